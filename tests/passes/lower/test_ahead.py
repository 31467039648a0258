"""What is asked for before it is read: columns that the nearest cache does not keep, by enough rows, in one stream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.prim_ops import PrefetchOp
from landbridge.ir.types import tensor_type
from landbridge.passes.lower.prims import lower_prim, vector_unit_of
from landbridge.passes.lower.schedule import VectorUnit
from landbridge.targets import Target

from .kernels import run_prim

#: Vectors of 16, and a nearest cache of 32 KiB: 512 vectors of a column.
WIDE = VectorUnit(64, 32, near_bytes=1 << 15, asks_ahead=True)
HERE = "llvm"


def panels(p: PrimBuilder, m: int, panes: int, k: int) -> None:
    """``x @ w``, whose ``w`` is panels of 16 columns."""
    p.generic(
        "pppr",
        [m, panes, 16, k],
        [(p.inputs[0], lambda i, j, c, r: (i, r)), (p.inputs[1], lambda i, j, c, r: (j, r, c))],
        [(p.outputs[0], lambda i, j, c, r: (i, j, c))],
        lambda s, acc, a, b: acc + a * b,
        init=0.0,
    )


def asked(m: int, panes: int, k: int, machine: VectorUnit) -> int:
    types = [tensor_type(shape, "float32") for shape in ((m, k), (panes, k, 16), (m, panes, 16))]
    prim = PrimBuilder("kernel", types[:2], types[2:])
    panels(prim, m, panes, k)
    return sum(isinstance(op, PrefetchOp) for op in lower_prim(prim.finish(), machine).walk())


def test_far_columns_are_asked_for_and_near_ones_are_not() -> None:
    assert asked(28, 4, 600, WIDE)
    assert not asked(28, 4, 100, WIDE)
    assert not asked(2, 4, 600, WIDE)
    assert not asked(28, 4, 600, replace(WIDE, asks_ahead=False))


def test_only_where_it_was_measured() -> None:
    assert vector_unit_of(Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3")).asks_ahead
    assert not vector_unit_of(Target("raspberry-pi-4")).asks_ahead
    assert not vector_unit_of(Target("c")).asks_ahead


@pytest.mark.parametrize(("m", "panes", "k"), [(28, 4, 600), (5, 1, 3001), (17, 3, 1100)])
def test_asking_past_the_end_changes_nothing(m: int, panes: int, k: int) -> None:
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((panes, k, 16), dtype=np.float32)
    (y,) = run_prim(lambda p: panels(p, m, panes, k), [x, w], [((m, panes, 16), "float32")], HERE)
    wanted = np.einsum("ik,jkc->ijc", x.astype(np.float64), w)
    np.testing.assert_allclose(y, wanted, rtol=0, atol=2.0**-22 * k**0.5 * np.abs(wanted).max())
