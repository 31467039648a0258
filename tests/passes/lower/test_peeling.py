"""Loops are peeled where padding begins and ends: what changes a reduction is read, what changes nothing left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from xdsl.ir import Block

import landbridge as lb
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.stages import view_prim
from landbridge.ir.types import tensor_type
from landbridge.passes.lower.candidates import schedule
from landbridge.passes.lower.code import Code
from landbridge.passes.lower.guards import LoopRanges
from landbridge.passes.lower.nest import Nest, build_nests
from landbridge.passes.lower.peeling import Peeling
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import VectorUnit
from landbridge.passes.lower.simplify import simplify

from .kernels import Array, run_prim

WEIGHTS = np.array([-1, -3, -2], np.float32)


def drawn(*shape: int) -> Array:
    return np.random.default_rng(3).standard_normal(shape, dtype=np.float32)


def windows(p: PrimBuilder, fill: float, init: float, body: Any) -> None:
    """``body`` over windows of 3 of each of 3 rows of 20, padded by one."""
    wide = p.pad(p.inputs[0], [0, 1], [0, 1], fill)
    ins = [(wide, lambda i, j, k: (i, j + k)), (p.inputs[1], lambda i, j, k: (k,))]
    p.generic("ppr", [3, 20, 3], ins, [(p.outputs[0], lambda i, j, k: (i, j))], body, init=init)


#: Reductions of windows that padding takes part in: the padding, the first value, the body, and the same in numpy.
TAKES_PART: dict[str, tuple[float, float, Any, Callable[[Array], Array]]] = {
    "a sum of ones": (1.0, 0.0, lambda s, acc, a, w: acc + a, lambda x: x.sum(-1)),
    "a largest value of zero": (0.0, -np.inf, lambda s, acc, a, w: s.maximum(acc, a), lambda x: x.max(-1)),
    "a product with zero": (0.0, 1.0, lambda s, acc, a, w: acc * a, lambda x: x.prod(-1)),
    "products of ones": (1.0, 0.0, lambda s, acc, a, w: acc + a * w, lambda x: x @ WEIGHTS),
    "exp(0)": (0.0, 0.0, lambda s, acc, a, w: acc + s.exp(a), lambda x: np.exp(x).sum(-1)),
    "products of exp(0)": (0.0, 0.0, lambda s, acc, a, w: acc + s.exp(a) * w, lambda x: np.exp(x) @ WEIGHTS),
    "-inf times what is negative": (
        -np.inf, -np.inf, lambda s, acc, a, w: s.maximum(acc, a * w), lambda x: (x * WEIGHTS).max(-1)
    ),
    "the last term alone": (0.0, 5.0, lambda s, acc, a, w: a, lambda x: x[..., -1]),
}  # fmt: skip


@pytest.mark.sample(5)
@pytest.mark.parametrize("case", TAKES_PART)
def test_padding_that_takes_part_in_a_reduction(case: str) -> None:
    """All of it negative, so that zero is the largest."""
    fill, init, body, reference = TAKES_PART[case]
    x = -np.abs(drawn(3, 20)) - 1

    (y,) = run_prim(lambda p: windows(p, fill, init, body), [x, WEIGHTS], [((3, 20), "float32")])
    padded = np.pad(x, ((0, 0), (1, 1)), constant_values=fill)
    np.testing.assert_allclose(y, reference(np.lib.stride_tricks.sliding_window_view(padded, 3, 1)), rtol=1e-5)


def test_padding_of_each_factor_counts_where_the_other_has_a_value() -> None:
    """Zeros before one factor may be left out; twos behind the other may not."""
    x, y = drawn(7, 5), drawn(4)

    def build(p: PrimBuilder) -> None:
        left = p.pad(p.inputs[0], [0, 1], [0, 0], 0.0)
        right = p.pad(p.inputs[1], [0], [2], 2.0)
        ins = [(left, lambda i, k: (i, k)), (right, lambda i, k: (k,))]
        p.generic("pr", [7, 6], ins, [(p.outputs[0], lambda i, k: (i,))], lambda s, acc, a, b: acc + a * b, init=0.0)

    (z,) = run_prim(build, [x, y], [((7,), "float32")])
    wanted = np.pad(x, ((0, 0), (1, 0))) @ np.pad(y, (0, 2), constant_values=2.0)
    np.testing.assert_allclose(z, wanted, rtol=1e-5, atol=1e-5)


#: Reductions of windows that padding leaves as they are: the padding, the first value and the body.
LEAVES: dict[str, tuple[float, float, Any]] = {
    "a sum": (0.0, 0.0, lambda s, acc, a, w: acc + a),
    "a sum, the accumulator last": (0.0, 0.0, lambda s, acc, a, w: a + acc),
    "products": (0.0, 0.0, lambda s, acc, a, w: acc + a * w),
    "a product": (1.0, 1.0, lambda s, acc, a, w: acc * a),
    "a largest value": (-np.inf, -np.inf, lambda s, acc, a, w: s.maximum(acc, a)),
}


@pytest.mark.parametrize("case", LEAVES)
def test_padding_that_changes_nothing_is_left_out(case: str) -> None:
    fill, init, body = LEAVES[case]
    prim = PrimBuilder(
        "k", [tensor_type((3, 20), "float32"), tensor_type((3,), "float32")], [tensor_type((3, 20), "float32")]
    )
    windows(prim, fill, init, body)
    (nest,) = build_nests(view_prim(prim.finish()))
    assert Peeling(nest, schedule(nest, VectorUnit(32, 16))).skips


def convolution(rows: int, taps: int, stride: int, pads: tuple[int, int], channels: int) -> Nest:
    """Sums of products along ``rows`` padded windows."""
    extent = (rows - 1) * stride + taps - sum(pads)
    types = [tensor_type(shape, "float32") for shape in ((extent, channels), (taps, channels, 16), (rows, 16))]
    p = PrimBuilder("k", types[:2], types[2:])
    wide = p.pad(p.inputs[0], [pads[0], 0], [pads[1], 0], 0.0)
    ins = [(wide, lambda m, o, i, c: (m * stride + i, c)), (p.inputs[1], lambda m, o, i, c: (i, c, o))]
    out = (p.outputs[0], lambda m, o, i, c: (m, o))
    p.generic("pprr", [rows, 16, taps, channels], ins, [out], lambda s, acc, a, w: acc + a * w, init=0.0)
    (nest,) = build_nests(view_prim(p.finish()))
    return simplify(nest)


def test_a_long_loop_is_peeled_for_all_tiles_and_a_short_one_in_each() -> None:
    nest = convolution(56, 3, 1, (1, 1), 16)
    peeling = Peeling(nest, schedule(nest, VectorUnit(32, 16)))
    (run, *_) = peeling.runs
    peeled = peeling.peeled(run)
    assert peeled is not None
    assert [(p.low, p.high) for p in peeled.first] == [(0, 1)]
    nest = convolution(56, 3, 1, (1, 1), 1)
    peeling = Peeling(nest, schedule(nest, VectorUnit(32, 16)))
    first, between, *_ = peeling.runs
    assert peeling.is_peeled(first) and first.count == 1 and peeling.peeled(first) is None
    assert not peeling.is_peeled(between)


def executed(peeling: Peeling, run: Run, row: int, taps: int, d: int) -> set[tuple[int, int]] | None:
    """The rows of the tile at ``row`` of ``run`` with the iterations that they execute; None if they are tested."""
    every = frozenset(range(run.tile))
    peeled = peeling.peeled(run)
    if peeled is not None:
        low, high = peeled.bounds(Code(Block()), taps, row)
        assert isinstance(low, int) and isinstance(high, int)
        found = {(m, i) for i in range(low, high) for m in every}
        for pieces, first, end in ((peeled.first, 0, low), (peeled.last, high, taps)):
            for p in pieces:
                found |= {(m, i) for i in range(max(first, p.low), min(end, p.high)) for m in p.rows}
        return found
    if peeling.is_peeled(run):
        return {(m, i) for p in peeling.tile_pieces(row, run.tile) for i in range(p.low, p.high) for m in p.rows}
    return None if peeling.inner_rows is None else {(m, i) for i in range(taps) for m in every}


@settings(deadline=None)
@example(7, 2, 1, 0, 5, 16)  # padding behind the rows that is as long as the first tile
@given(
    st.integers(1, 70),
    st.integers(1, 7),
    st.integers(1, 3),
    st.integers(0, 9),
    st.integers(0, 9),
    st.sampled_from((1, 16)),
)
def test_rows_of_tiles_execute_the_iterations_inside(
    rows: int, taps: int, stride: int, before: int, behind: int, channels: int
) -> None:
    """Of every tile, whether it is peeled, its loop is, or neither; and no row is in no tile or in two."""
    extent = (rows - 1) * stride + taps - before - behind
    if extent < 1:
        return
    nest = convolution(rows, taps, stride, (before, behind), channels)
    sched = schedule(nest, VectorUnit(32, 16))
    peeling = Peeling(nest, sched)
    if not peeling.row_guards:
        return
    d, m_dim = peeling.row_guards[0].dim, sched.m_dim
    assert m_dim is not None
    covered: list[int] = []
    for run in peeling.runs:
        for k in range(run.count):
            row = run.start + k * run.tile
            assert isinstance(row, int)
            covered += range(row, row + run.tile)
            found = executed(peeling, run, row, taps, d)
            inside = {
                (m, i)
                for m in range(run.tile)
                for i in range(taps)
                if 0 <= (row + m) * stride + i - before < extent
            }  # fmt: skip
            assert found is None or found == inside
            known = LoopRanges(nest)
            with known.within(m_dim, row, row + run.tile - 1):
                assert all(known.holds(g) for g in peeling.guards_of(d)) == (len(inside) == run.tile * taps)
    assert covered == list(range(rows))


#: Rows, taps along them, stride, and padding of rows before and behind: a last tile that is short, shared or alone,
#: padding of one end, of iterations that differ, and more than a tile has.
EDGES = [
    (56, 3, 1, (1, 1)),
    (28, 3, 1, (1, 1)),
    (28, 3, 2, (1, 1)),
    (29, 3, 1, (0, 1)),
    (40, 5, 1, (2, 2)),
    (33, 5, 2, (2, 1)),
    (50, 3, 1, (5, 9)),
    (9, 7, 1, (3, 3)),
]


@pytest.mark.sample(5)
@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
@pytest.mark.parametrize(("rows", "taps", "stride", "pads"), EDGES)
def test_first_and_last_tiles_leave_out_padding(
    rows: int, taps: int, stride: int, pads: tuple[int, int], is_open: bool
) -> None:
    rng = np.random.default_rng(rows)
    weight = rng.standard_normal((64, 32, 3, taps), dtype=np.float32)
    before, behind = pads
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, before, 1, behind], strides=[1, stride])
    shape = (1, 32, 4, "w" if is_open else rows)
    kind = onnx.TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("x", kind, shape)]
    outputs = [helper.make_tensor_value_info("y", kind, [None] * 4)]
    graph = helper.make_graph([node], "conv", inputs, outputs, [numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = rng.standard_normal((1, 32, 4, rows), dtype=np.float32)

    (y,) = lb.Session(lb.compile(model, dims={"w": "5..64"} if is_open else None))(x)

    padded = np.pad(x[0].astype(np.float64), ((0, 0), (1, 1), pads))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, taps), (1, 2))[:, :, ::stride]
    np.testing.assert_allclose(np.asarray(y)[0], np.einsum("chwij,ocij->ohw", windows, weight), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
@pytest.mark.parametrize(
    ("samples", "taps", "stride", "pads"),
    [
        (270, 3, 1, (5, 5)),
        (270, 3, 1, (4, 0)),
        (270, 3, 1, (0, 5)),
        (280, 5, 1, (12, 9)),
        (271, 3, 2, (5, 5)),
        (64, 1, 1, (3, 3)),
        (400, 2, 1, (40, 20)),
    ],
)
def test_padding_wider_than_the_window(
    samples: int, taps: int, stride: int, pads: tuple[int, int], is_open: bool
) -> None:
    """The first results of a tile read nothing but padding, and others of the same tile do not."""
    rng = np.random.default_rng(samples)
    weight = rng.standard_normal((16, 16, taps), dtype=np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=pads, strides=[stride])
    kind = onnx.TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("x", kind, (1, 16, "n" if is_open else samples))]
    outputs = [helper.make_tensor_value_info("y", kind, [None] * 3)]
    graph = helper.make_graph([node], "conv", inputs, outputs, [numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = lb.Session(lb.compile(model, dims={"n": "30..600"} if is_open else None))
    for length in (samples, 30, 31, 44, 45, 599) if is_open else (samples,):
        x = rng.standard_normal((1, 16, length), dtype=np.float32)
        padded = np.pad(x[0].astype(np.float64), ((0, 0), pads))
        windows = np.lib.stride_tricks.sliding_window_view(padded, taps, 1)[:, ::stride]
        wanted = np.einsum("cni,oci->on", windows, weight.astype(np.float64))
        np.testing.assert_allclose(np.asarray(session(x)[0])[0], wanted, rtol=1e-4, atol=1e-4, err_msg=str(length))


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(12))
def test_open_windows_are_those_of_numpy(seed: int) -> None:
    """Convolutions and pools of whole numbers over an open number of rows or columns, sanitized, at many sizes."""
    rng = np.random.default_rng(seed)
    taps, stride, dilation = int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
    reach = (taps - 1) * dilation + 1
    kind = ("Conv", "MaxPool", "Conv")[seed % 3]
    most = taps - 1 if kind == "MaxPool" else reach + 2
    pads = [int(p) for p in rng.integers(0, most + 1, 2)]
    channels = int(rng.choice((3, 16)))
    weight = rng.integers(-3, 4, (16, channels, taps)).astype(np.float32)
    attributes: dict[str, Any] = {"pads": pads, "strides": [stride], "kernel_shape": [taps], "dilations": [dilation]}
    names = ["x", "w"] if kind == "Conv" else ["x"]
    node = helper.make_node(kind, names, ["y"], **attributes)
    float_kind = onnx.TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("x", float_kind, (1, channels, "n"))]
    outputs = [helper.make_tensor_value_info("y", float_kind, [None] * 3)]
    weights = [numpy_helper.from_array(weight, "w")] if kind == "Conv" else []
    graph = helper.make_graph([node], "window", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = lb.Session(lb.compile(model, dims={"n": f"{reach}..400"}, sanitize=True))
    for length in (reach, reach + 1, 17, 31, 64, 399):
        x = rng.integers(-4, 5, (1, channels, max(length, reach))).astype(np.float32)
        fill = -np.inf if kind == "MaxPool" else 0.0
        padded = np.pad(x[0], ((0, 0), pads), constant_values=fill)
        found = np.lib.stride_tricks.sliding_window_view(padded, reach, 1)[:, ::stride, ::dilation]
        wanted = found.max(-1) if kind == "MaxPool" else np.einsum("cni,oci->on", found, weight)
        np.testing.assert_array_equal(np.asarray(session(x)[0])[0], wanted, err_msg=str(length))
