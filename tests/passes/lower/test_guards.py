"""Where guards of padded reads hold: interval arithmetic, known ranges by scope, tests and clipped loops."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.stages import view_prim
from landbridge.ir.types import tensor_type
from landbridge.passes.lower.access import ElementAccess, Guard, Linear
from landbridge.passes.lower.code import Code
from landbridge.passes.lower.guards import LoopRanges, bound_guard, full_ranges, index_range, truth
from landbridge.passes.lower.nest import Bound, Nest, build_nests
from landbridge.sizes.size import dimension

from .kernels import Array, run_prim

LOOPS = 3


@st.composite
def guards(draw: st.DrawFn) -> tuple[Guard, list[tuple[int, int]]]:
    """A guard over three loops, and a range of each."""
    factors = [draw(st.integers(-3, 3)) for _ in range(LOOPS)]
    index = Linear(draw(st.integers(-6, 6)), {d: c for d, c in enumerate(factors) if c})
    starts = [draw(st.integers(0, 4)) for _ in range(LOOPS)]
    return Guard(index, draw(st.integers(1, 9))), [(s, s + draw(st.integers(0, 3))) for s in starts]


def values(guard: Guard, ranges: list[tuple[int, int]]) -> list[int]:
    """The index at every iteration in ``ranges``."""
    points = product(*(range(low, high + 1) for low, high in ranges))
    return [guard.index.const + sum(c * p[d] for d, c in guard.index.coeffs.items()) for p in points]


@given(guards())
def test_truth_is_that_of_every_iteration(case: tuple[Guard, list[tuple[int, int]]]) -> None:
    guard, ranges = case
    found, indices = truth(guard, ranges), values(guard, ranges)
    inside = [0 <= i < guard.extent for i in indices]
    assert index_range(guard.index, ranges) == (min(indices), max(indices))
    assert (found is True) == all(inside)
    assert found is not False or not any(inside)


def test_truth_over_open_ranges() -> None:
    w = dimension("w", 8, 64)
    guard = Guard(Linear(-1, {0: 1, 1: 1}), w)  # type: ignore[arg-type]
    assert truth(guard, [(0, w - 1), (0, 2)]) is None
    assert truth(guard, [(1, w - 2), (0, 2)]) is True
    assert truth(guard, [(0, 0), (0, 0)]) is False
    assert truth(guard, [(w - 1, w - 1), (2, 2)]) is False
    assert truth(guard, [(70, 70), (0, 2)]) is False


def test_an_index_that_is_not_linear_has_no_range() -> None:
    from xdsl.ir.affine import AffineExpr

    halves = Linear(0, {}, ((1, AffineExpr.dimension(0) // 2),))
    assert index_range(halves, [(0, 3)]) is None
    assert truth(Guard(halves, 2), [(0, 3)]) is None


def window(rows: int, taps: int, pads: tuple[int, int], stride: int = 1) -> Nest:
    """Sums of ``taps`` elements of each of ``rows`` padded windows, four sums at once."""
    extent = (rows - 1) * stride + taps - sum(pads)
    p = PrimBuilder("k", [tensor_type((extent, 4), "float32")], [tensor_type((rows, 4), "float32")])
    padded = p.pad(p.inputs[0], [pads[0], 0], [pads[1], 0], 0.0)
    ins = [(padded, lambda i, c, k: (i * stride + k, c))]
    p.generic(
        "ppr", [rows, 4, taps], ins, [(p.outputs[0], lambda i, c, k: (i, c))], lambda s, acc, a: acc + a, init=0.0
    )
    (nest,) = build_nests(view_prim(p.finish()))
    return nest


def guard_of(nest: Nest) -> Guard:
    """The guard of the padded axis."""
    read = nest.stages[0].reads[0]
    assert isinstance(read, ElementAccess)
    return read.guards[0]


def test_a_range_is_known_in_its_scope_alone() -> None:
    nest = window(8, 3, (1, 1))
    guard, known = guard_of(nest), LoopRanges(nest)
    assert not known.holds(guard)
    with known.within(0, 1, 6):
        assert known.holds(guard)
        with known.within(2, 0, 0):
            assert known.holds(guard)
    assert not known.holds(guard)
    with known.within(0, 0, 6):
        assert not known.holds(guard)
        with known.within(2, 1, 2):
            assert known.holds(guard)
        assert not known.holds(guard)
    with known.tested([guard]):
        assert known.holds(guard)
    assert not known.holds(guard)


def test_whole_tiles_are_known_to_be_inside() -> None:
    nest = window(8, 3, (1, 1))
    nest.bounds.append(Bound(0, 2, 3, 22, fits=True))
    guard, known = bound_guard(nest.bounds[0]), LoopRanges(nest)
    assert not known.holds(guard)  # the last tile has one element
    with known.within(0, 0, 6):
        assert known.holds(guard)
    nest.bounds[:] = [Bound(0, 2, 3, 24, fits=True)]
    assert LoopRanges(nest).holds(bound_guard(nest.bounds[0]))


@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 3), st.integers(0, 5), st.integers(0, 5))
def test_a_clipped_loop_has_the_iterations_inside(rows: int, taps: int, stride: int, before: int, behind: int) -> None:
    """At every row: bounds are numbers where those of the row are."""
    if (rows - 1) * stride + taps <= before + behind:
        return
    nest = window(rows, taps, (before, behind), stride)
    guard, known, code = guard_of(nest), LoopRanges(nest), Code(Block())
    for row in range(rows):
        low, high, held = known.clip(code, [guard], 2, {0: row}, 0, taps)
        inside = [k for k in range(taps) if 0 <= row * stride + k - before < guard.extent]
        assert list(range(low, high)) == inside  # type: ignore[arg-type]
        assert held == ([] if known.holds(guard) else [guard])


@pytest.mark.parametrize(("pads", "clipped"), [((1, 0), {"arith.maxsi"}), ((0, 1), {"arith.minsi"}), ((0, 0), set())])
def test_a_loop_is_clipped_only_where_padding_is(pads: tuple[int, int], clipped: set[str]) -> None:
    nest = window(8, 3, pads)
    block = Block(arg_types=[IndexType()])
    low, high, _ = LoopRanges(nest).clip(Code(block), [guard_of(nest)], 2, {0: block.args[0]}, 0, 3)
    assert {op.name for op in block.ops} & {"arith.maxsi", "arith.minsi"} == clipped
    assert (low == 0) == (not pads[0])
    assert (high == 3) == (not pads[1])


def test_a_test_at_run_time_is_of_all_iterations() -> None:
    """Rows ``r`` to ``r + 3`` of 16 read nothing before row 2 and nothing behind row 13."""
    nest = window(16, 5, (2, 2))
    block = Block(arg_types=[IndexType()])
    code = Code(block)
    known = LoopRanges(nest)
    assert known.test(code, [], {0: block.args[0]}, {0: 4}) is None
    assert known.test(code, [guard_of(nest)], {}, {}) is None  # rows are no loop of the reduction
    assert known.test(code, [guard_of(nest)], {0: block.args[0]}, {0: 4}) is not None
    code.finish()
    compared = [op for op in block.ops if op.name == "arith.cmpi"]
    limits = [[getattr(v.owner, "value", None) for v in op.operands] for op in compared]
    numbers = [[None if v is None else v.value.data for v in pair] for pair in limits]
    assert numbers == [[2, None], [None, 10]]


def test_nests_have_no_ranges_but_their_loops() -> None:
    nest = window(8, 3, (1, 1))
    assert full_ranges(nest.dims) == [(0, 7), (0, 3), (0, 2)]


@st.composite
def geometries(draw: st.DrawFn) -> dict[str, Any]:
    """Rows and columns of a window: results, taps, stride, dilation and padding of each."""
    axes = []
    for most in (5, 40):
        taps, dilation = draw(st.sampled_from((1, 2, 3, 3, 5))), draw(st.sampled_from((1, 1, 2, 3)))
        reach = (taps - 1) * dilation + 1
        stride, pads = draw(st.sampled_from((1, 1, 2, 3))), [draw(st.integers(0, reach + 2)) for _ in range(2)]
        results = draw(st.integers(1, most))
        extent = (results - 1) * stride + reach - sum(pads)
        if extent < 1:
            results += -(-(1 - extent) // stride)
            extent = (results - 1) * stride + reach - sum(pads)
        axes.append((results, taps, stride, dilation, pads, extent))
    return {
        "axes": axes,
        "channels": draw(st.sampled_from((1, 3, 8))),
        "lanes": draw(st.sampled_from((4, 8, 16))),
        "kind": draw(st.sampled_from(("products", "sums", "maxima", "columns"))),
    }


def windows_of(x: Array, case: dict[str, Any], fill: float) -> Array:
    """Windows of ``x``, axes 1 and 2 of which are rows and columns, as axes 3 and 4."""
    (rows, taps, stride, dilation, pads, _), (columns, taps_w, stride_w, dilation_w, pads_w, _) = case["axes"]
    padded = np.pad(x, ((0, 0), pads, pads_w, (0, 0)), constant_values=fill)
    picked = [
        padded[:, i * dilation : i * dilation + (rows - 1) * stride + 1 : stride]
        [:, :, j * dilation_w : j * dilation_w + (columns - 1) * stride_w + 1 : stride_w]
        for i, j in product(range(taps), range(taps_w))
    ]  # fmt: skip
    return np.stack(picked, axis=3)


@pytest.mark.sample(4)
@pytest.mark.parametrize("target", ["llvm", "llvm -vector-bits=128 -vector-registers=16", "llvm -vector-bits=32", "c"])
@settings(max_examples=25, deadline=None)
@given(case=geometries())
def test_random_padded_windows_are_those_of_numpy(target: str, case: dict[str, Any]) -> None:
    """Whole numbers, so that results are equal whatever the order of sums; bytes around the output stay as they are."""
    by_row, by_column = case["axes"]
    rows, taps, stride, dilation, pads, extent = by_row
    columns, taps_w, stride_w, dilation_w, pads_w, extent_w = by_column
    channels, lanes, kind = case["channels"], case["lanes"], case["kind"]
    rng = np.random.default_rng(prod((rows, columns, taps, taps_w, stride_w)))
    fill = -np.inf if kind == "maxima" else 0.0
    if kind == "columns":  # the lanes of vectors are columns, which padding cuts
        lanes = 1
    inner = channels if kind == "products" else lanes
    x = rng.integers(-4, 5, (2, extent, extent_w, inner)).astype(np.float32)
    w = rng.integers(-4, 5, (taps, taps_w, channels, lanes)).astype(np.float32)

    def build(p: PrimBuilder) -> None:
        wide = p.pad(p.inputs[0], [0, pads[0], pads_w[0], 0], [0, pads[1], pads_w[1], 0], fill)
        out = (p.outputs[0], lambda b, h, v, o, *r: (b, h, v, o))

        def at(h: Any, v: Any, i: Any, j: Any) -> tuple[Any, Any]:
            return h * stride + i * dilation, v * stride_w + j * dilation_w

        if kind == "products":
            ins = [
                (wide, lambda b, h, v, o, i, j, c: (b, *at(h, v, i, j), c)),
                (p.inputs[1], lambda b, h, v, o, i, j, c: (i, j, c, o)),
            ]
            extents = [2, rows, columns, lanes, taps, taps_w, channels]
            p.generic("pppprrr", extents, ins, [out], lambda s, acc, a, b: acc + a * b, init=0.0)
            return
        body = (lambda s, acc, a: s.maximum(acc, a)) if kind == "maxima" else (lambda s, acc, a: acc + a)
        reads = [(wide, lambda b, h, v, o, i, j: (b, *at(h, v, i, j), o))]
        p.generic("pppprr", [2, rows, columns, lanes, taps, taps_w], reads, [out], body, init=fill)

    inputs = [x, w] if kind == "products" else [x]
    (y,) = run_prim(build, inputs, [((2, rows, columns, lanes), "float32")], target)
    found = windows_of(x, case, fill)
    if kind == "products":
        wanted = np.einsum("bhwkc,kco->bhwo", found.astype(np.float64), w.reshape(-1, channels, lanes))
    else:
        wanted = found.max(3) if kind == "maxima" else found.sum(3)
    np.testing.assert_array_equal(y, wanted.astype(np.float32))
