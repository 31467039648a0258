"""Every operator, compiled by each generator of CPU code, against the onnx wheel's stored node tests and each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.ir.module import IRModule
from landbridge.targets import Target
from tests.ops import node_cases
from tests.ops.test_node_cases import NAMES
from tests.witnesses.guard_pages import SIDES, GuardedRun, in_child

Array = np.ndarray[Any, Any]

#: The targets; kernels of one operator are small, so that compiling C takes most of the time.
TARGETS = {"llvm": "llvm", "c": "c -cflags=-O1"}
#: Machine epsilons, of the largest output, by which two floats may differ. Both targets compile the same lowered form,
#: in the same order of operations; but the C compiler fuses a product and a sum where LLVM does not, and the reverse,
#: each of which rounds once less. 3.2 was seen; most cases are equal bit by bit.
_EPSILONS = 8


def outputs(name: str, target: str) -> tuple[Sequence[Array], ...]:
    """The outputs of a case for each of its data sets, once they agree with the stored ones; from a process of its
    own, for each kernel also runs with its operands beside inaccessible pages, on both sides."""
    return in_child(checked_outputs, name, target)


def checked_outputs(name: str, target: str) -> tuple[Sequence[Array], ...]:
    """What ``outputs`` says, in this process."""
    found: list[Sequence[Array]] = []

    def run(module: IRModule, feeds: Mapping[str, Array]) -> Sequence[Array]:
        executable = lb.compile(module, module.targets[0])
        session = lb.Session(executable, num_threads=1)
        inputs = [np.array(feeds[spec.name], order="C") for spec in session.inputs]
        found.append([np.asarray(output) for output in session(*inputs)])
        for side in SIDES:
            for ours, guarded in zip(found[-1], GuardedRun(executable, side)(*inputs), strict=True):
                assert ours.tobytes() == guarded.tobytes()
        return found[-1]

    node_cases.check(name, Target(TARGETS[target]), run)
    return tuple(found)


@pytest.mark.sample(130)
@pytest.mark.parametrize("name", NAMES)
def test_the_generators_agree_with_the_suite_and_each_other(name: str) -> None:
    for ours, theirs in zip(outputs(name, "llvm"), outputs(name, "c"), strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            if a.tobytes() == b.tobytes():
                continue
            assert a.dtype.kind not in "iub", "integers are equal bit by bit"
            assert np.array_equal(np.isfinite(a), np.isfinite(b))
            finite = np.isfinite(a)
            np.testing.assert_array_equal(a[~finite], b[~finite])
            scale = np.abs(b[finite]).astype(np.float64).max(initial=0)
            limit = _EPSILONS * float(np.finfo(a.dtype).eps if a.dtype.kind == "f" else 2.0**-7) * scale
            np.testing.assert_allclose(a[finite].astype(np.float64), b[finite].astype(np.float64), rtol=0, atol=limit)
