"""What a line's vectors leave over is a narrow vector, where that takes half the time."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.stages import view_prim
from landbridge.ir.types import tensor_type
from landbridge.passes.lower.candidates import schedule
from landbridge.passes.lower.narrow_columns import narrow_last_column
from landbridge.passes.lower.nest import build_nests
from landbridge.passes.lower.schedule import Schedule, VectorUnit

from .kernels import run_prim

#: Vectors of 8 floats that take two passes, in instructions that this machine has.
HALVED = VectorUnit(32, 16, l1_bytes=1 << 15, l2_bytes=1 << 20, prefetches=True, two_passes=True, unrolls=True)
HERE = "llvm -vector-bits=256 -vector-registers=16"


def product(p: PrimBuilder, m: int, n: int, k: int) -> None:
    ins = [(p.inputs[0], lambda i, j, k: (i, k)), (p.inputs[1], lambda i, j, k: (k, j))]
    p.generic("ppr", [m, n, k], ins, [(p.outputs[0], lambda i, j, k: (i, j))], lambda s, a, x, w: a + x * w, init=0.0)


def pooled(p: PrimBuilder, lines: int, pixels: int) -> None:
    """Sums of 3 x 3, of which the ends of lines have padding."""
    x: Any = p.pad(p.inputs[0], [1, 1], [1, 1], 0.0)
    ins = [(x, lambda i, j, a, b: (i + a, j + b)), (p.inputs[1], lambda i, j, a, b: (a, b))]
    out = [(p.outputs[0], lambda i, j, a, b: (i, j))]
    p.generic("pprr", [lines, pixels, 3, 3], ins, out, lambda s, acc, a, b: acc + a * b, init=0.0)


def schedules(m: int, n: int, machine: VectorUnit) -> list[Schedule]:
    types = [tensor_type(shape, "float32") for shape in ((m, 40), (40, n), (m, n))]
    prim = PrimBuilder("kernel", types[:2], types[2:])
    product(prim, m, n, 40)
    (nest,) = build_nests(view_prim(prim.finish()))
    return narrow_last_column(nest, schedule(nest, machine), machine, repeats=True)


@pytest.mark.parametrize(
    ("columns", "lanes"),
    [(49, [8, 2]), (50, [8, 2]), (51, [8, 4]), (52, [8, 4]), (53, [8]), (48, [8]), (9, [8, 2]), (7, [8]), (4, [4])],
)
def test_what_is_left_has_a_vector_of_its_size(columns: int, lanes: list[int]) -> None:
    found = schedules(30, columns, HALVED)
    assert [each.lanes for each in found] == lanes
    retained = sum(
        run.count * run.tile * s.lanes - (run.mask and s.lanes - run.mask) for s in found for run in s.n_runs
    )
    assert retained == columns
    for s in found:
        rows, across = max(r.tile for r in s.m_runs), max(r.tile for r in s.n_runs)
        assert rows * across < HALVED.registers


def test_vectors_that_are_as_dear_stay_whole() -> None:
    assert [each.lanes for each in schedules(30, 49, VectorUnit(32, 16))] == [8]


@given(st.integers(1, 40), st.integers(1, 70), st.integers(1, 300))
@example(30, 49, 40)
@example(1, 17, 300)
@example(17, 66, 7)
def test_products_are_right(m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(4)
    x, w = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    with patch("landbridge.passes.lower.prims.vector_unit_of", lambda _: HALVED):
        (y,) = run_prim(lambda p: product(p, m, n, k), [x, w], [((m, n), "float32")], HERE)
    # of sums in any order (Higham, "The accuracy of floating point summation", 1993, 3.4)
    assert (abs(y - x.astype(np.float64) @ w) <= 2.0**-24 * k * (abs(x.astype(np.float64)) @ abs(w))).all()


@pytest.mark.full
@given(st.integers(1, 40), st.integers(1, 70))
@example(30, 49)
@example(30, 17)
def test_padded_lines_are_right(lines: int, pixels: int) -> None:
    rng = np.random.default_rng(4)
    x, w = rng.standard_normal((lines, pixels), np.float32), rng.standard_normal((3, 3), np.float32)
    with patch("landbridge.passes.lower.prims.vector_unit_of", lambda _: HALVED):
        (y,) = run_prim(lambda p: pooled(p, lines, pixels), [x, w], [((lines, pixels), "float32")], HERE)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x.astype(np.float64), 1), (3, 3))
    np.testing.assert_allclose(y, np.einsum("ijab,ab->ij", windows, w), rtol=1e-5, atol=1e-5)
