"""Extents that no tile divides: each schedule with each epilogue compiles for each width of vectors, and is right.

What compiles is proved to stay inside its buffers, for targets that do not run here too.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.passes.lower.remainder_models import EPILOGUES, SCHEDULES, case, is_exact

import landbridge as lb
from landbridge.targets import Target

EXTENTS = (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 18, 20, 23, 25, 31, 33, 36, 49, 63, 65, 100)
WIDTHS = [f"llvm -vector-bits={bits} -vector-registers=16" for bits in (32, 64, 128, 256, 512)]
CPUS = ["llvm -mcpu=x86-64-v2", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v4", "llvm -mcpu=znver4"]
ELSEWHERE = ["llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72", "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1"]
TARGETS = [*CPUS, *WIDTHS, "c", "c -vector-bits=128", *ELSEWHERE]


def check(schedule: str, epilogue: str, live: bool, n: int, target: str) -> None:
    """One model of ``n``, compiled for ``target`` and run where this machine can."""
    model, inputs, expected = case(schedule, epilogue, live, n)
    executable = lb.compile(model, Target(target))
    if target in ELSEWHERE:
        return
    try:
        session = lb.Session(executable, num_threads=1)
    except lb.BindError:
        assert "mcpu" in target, "what is no other CPU runs here"
        return  # this machine lacks instructions of that CPU
    (found,) = session(*inputs)
    got = np.asarray(found)
    subject = f"{schedule}, {epilogue}, {'live' if live else 'constant'} operand, {n}, {target}"
    assert got.shape == expected.shape, subject
    if is_exact(schedule, epilogue):
        np.testing.assert_array_equal(got, expected, subject)
    elif expected.dtype.kind == "f":
        # exp and erf are within 4 ulp, 5e-7, and so is each of the two roundings of a quotient of sums
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-7, err_msg=subject)
    else:
        np.testing.assert_allclose(
            got, expected, rtol=0, atol=1, err_msg=subject
        )  # next to a number that rounds either way


@pytest.mark.sample(4, rarer=3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("epilogue", EPILOGUES)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_remainders(schedule: str, epilogue: str, target: str) -> None:
    drawn = Random(f"{schedule} {epilogue} {target}")
    for live in (False, True):
        check(schedule, epilogue, live, drawn.choice(EXTENTS), target)


@pytest.mark.sample(4)
@pytest.mark.parametrize("n", [17, 18, 20, 23, 25, 36, 100])
def test_weights_in_whole_tiles_under_an_epilogue_without_vectors(n: int) -> None:
    check("product", "integer div", False, n, "llvm")


@pytest.mark.sample(7)
@pytest.mark.parametrize("n", [17, 20, 33, 49])
@pytest.mark.parametrize("schedule", ["row dots", "rows times sums", "head dots"])
def test_sums_along_memory_in_both_operands(schedule: str, n: int) -> None:
    check(schedule, "none", False, n, "llvm")
