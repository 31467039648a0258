"""Iterations of a reduction loop beside each other: what NEON's schedules compute, in this machine's instructions."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import onnx.reference
import pytest
from xdsl.dialects import vector

import landbridge as lb
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.stages import view_prim
from landbridge.ir.types import tensor_type
from landbridge.passes.lower.candidates import schedule
from landbridge.passes.lower.cost import SUM_ORDER
from landbridge.passes.lower.nest import build_nests
from landbridge.passes.lower.prims import lower_prim
from landbridge.passes.lower.schedule import Schedule, VectorUnit
from landbridge.passes.lower.windows import SharedWindow
from landbridge.targets import Target

from .kernels import Array, run_prim

NEON = VectorUnit(16, 32, by_lane=True)
HERE = "llvm -vector-bits=128 -vector-registers=32"


def drawn(*shape: int) -> Array:
    return np.random.default_rng(5).standard_normal(shape, dtype=np.float32)


def product(p: PrimBuilder, m: int, n: int, k: int) -> None:
    """``x @ w``, whose ``x`` is read along its rows."""
    ins = [(p.inputs[0], lambda i, j, k: (i, k)), (p.inputs[1], lambda i, j, k: (k, j))]
    p.generic("ppr", [m, n, k], ins, [(p.outputs[0], lambda i, j, k: (i, j))], lambda s, a, x, w: a + x * w, init=0.0)


def scheduled(m: int, n: int, k: int, machine: VectorUnit) -> Schedule:
    types = [tensor_type(shape, "float32") for shape in ((m, k), (k, n), (m, n))]
    prim = PrimBuilder("k", types[:2], types[2:])
    product(prim, m, n, k)
    (nest,) = build_nests(view_prim(prim.finish()))
    return schedule(nest, machine)


@pytest.mark.sample(8)
@pytest.mark.parametrize("k", [1, 3, 4, 7, 16, 2 * SUM_ORDER.chain_terms + 4, 3 * SUM_ORDER.chain_terms + 7])
@pytest.mark.parametrize(("m", "n"), [(1, 32), (5, 4), (9, 24), (17, 13)])
def test_products_of_any_depth(m: int, n: int, k: int) -> None:
    x, w = drawn(m, k), drawn(k, n)
    with patch("landbridge.passes.lower.prims.vector_unit_of", lambda _: NEON):
        (y,) = run_prim(lambda p: product(p, m, n, k), [x, w], [((m, n), "float32")], HERE)
    np.testing.assert_allclose(y, x.astype(np.float64) @ w, rtol=1e-5, atol=1e-5 * np.sqrt(k))
    (plain,) = run_prim(lambda p: product(p, m, n, k), [x, w], [((m, n), "float32")], HERE)
    if k % 4 == 0 or k <= 2 * SUM_ORDER.chain_terms:  # else the last iterations follow the blocks of the sum
        np.testing.assert_array_equal(y, plain)  # in the same order, whatever is loaded together


def test_what_all_lanes_share_is_loaded_for_four_iterations() -> None:
    types = [tensor_type(shape, "float32") for shape in ((6, 16), (16, 12), (6, 12))]
    prim = PrimBuilder("k", types[:2], types[2:])
    product(prim, 6, 12, 16)
    lowered = lower_prim(prim.finish(), NEON)
    taken = [op.static_position.get_values() for op in lowered.walk() if isinstance(op, vector.ExtractOp)]
    assert sorted({lane for (lane,) in taken}) == [0, 1, 2, 3]
    assert scheduled(6, 12, 16, NEON).iterations == 4
    assert scheduled(6, 12, 16, VectorUnit(16, 32)).iterations == 1
    assert scheduled(6, 12, 3, NEON).iterations == 1


def test_blocks_leave_space_for_what_is_loaded_together() -> None:
    for m, n in ((64, 64), (7, 40), (30, 8)):
        sched = scheduled(m, n, 64, NEON)
        rows, columns = max(r.tile for r in sched.m_runs), max(r.tile for r in sched.n_runs)
        assert rows * columns + rows + 2 * columns <= NEON.registers


def windows(p: PrimBuilder, rows: int, kernel: int, stride: int, pad: int) -> None:
    """Each channel of 8, which lie side by side, by itself: a window over a row of pixels."""
    x: Any = p.pad(p.inputs[0], [pad, 0], [pad, 0], 0.0) if pad else p.inputs[0]
    ins = [(x, lambda i, c, k: (i * stride + k, c)), (p.inputs[1], lambda i, c, k: (k, c))]
    out = [(p.outputs[0], lambda i, c, k: (i, c))]
    p.generic("ppr", [rows, 8, kernel], ins, out, lambda s, a, x, w: a + x * w, init=0.0)


@pytest.mark.sample(18)
@pytest.mark.parametrize("pad", [0, 1])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 2, 3, 5, 7, 9])
@pytest.mark.parametrize("rows", [1, 4, 37])
def test_windows_that_overlap(rows: int, kernel: int, stride: int, pad: int) -> None:
    inside = (rows - 1) * stride + kernel - 2 * pad
    if inside < 1:
        rows, inside = rows + 2, inside + 2 * stride
    x, w = drawn(inside, 8), drawn(kernel, 8)
    with patch("landbridge.passes.lower.prims.vector_unit_of", lambda _: NEON):
        (y,) = run_prim(lambda p: windows(p, rows, kernel, stride, pad), [x, w], [((rows, 8), "float32")], HERE)
    seen = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((pad, pad), (0, 0))), kernel, 0)[::stride]
    np.testing.assert_allclose(y, np.einsum("ick,kc->ic", seen, w), rtol=1e-5, atol=1e-5)


#: The first bits of instructions that store vector registers, or pairs of them, on the stack (STR and STP).
TO_STACK = (0x3D8003E0, 0xAD0003E0)


def stores_to_stack(model: onnx.ModelProto) -> list[str]:
    """The instructions for a board that store vectors on the stack."""
    (module,) = lb.compile(model, "raspberry-pi-5").modules
    code = np.frombuffer(module.image.code[: len(module.image.code) // 4 * 4], np.uint32)
    return [hex(word) for word in code if word & 0xFFC003E0 in TO_STACK]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (3, 2), (5, 1), (5, 2)])
def test_windows_leave_no_vector_on_the_stack(kernel: int, stride: int) -> None:
    pad, size = kernel // 2, 28 * stride
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 18]> g (float[1,16,{size},{size}] x) => (float[1,16,28,28] y) {{
            y = Conv<group=16, pads=[{pad}, {pad}, {pad}, {pad}], strides=[{stride}, {stride}]>(x, w)
        }}"""
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(drawn(16, 1, kernel, kernel), "w"))
    assert not stores_to_stack(model)


@pytest.mark.parametrize("op", ["Softmax", "Exp", "Sigmoid"])
def test_functions_leave_no_vector_on_the_stack(op: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 18]> g (float[16,1000] x) => (float[16,1000] y) {{ y = {op}(x) }}"""
    )
    assert not stores_to_stack(model)


def test_boards_multiply_by_lanes_and_this_machine_does_not() -> None:
    from landbridge.passes.lower.prims import vector_unit_of

    assert vector_unit_of(Target("raspberry-pi-4")).by_lane
    assert not vector_unit_of(Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3")).by_lane


@pytest.mark.parametrize("height", [0.4, 1.7])
def test_a_body_that_computes_places_has_those_of_one_iteration(height: float) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 18]> g (float[1,3,11,8] x) => (float[1,3,h,w] y) {{
            scales = Constant<value_floats=[1.0, 1.0, {height}, 1.0]>()
            y = Resize<mode="cubic", antialias=1>(x, , scales)
        }}"""
    )
    x = drawn(1, 3, 11, 8)
    with patch("landbridge.passes.lower.prims.vector_unit_of", lambda _: NEON):
        (y,) = lb.Session(lb.compile(model, HERE))(x)
    (wanted,) = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(y, wanted, rtol=0, atol=2e-5)


def number_windows(p: PrimBuilder, rows: int, channels: int, kernel: int, stride: int, pad: int) -> None:
    """A signal's windows times weights whose output channels lie side by side: no channel of the signal is a lane."""
    x: Any = p.pad(p.inputs[0], [0, pad], [0, pad], 0.0) if pad else p.inputs[0]
    ins = [(x, lambda i, o, c, k: (c, i * stride + k)), (p.inputs[1], lambda i, o, c, k: (c, k, o))]
    out = [(p.outputs[0], lambda i, o, c, k: (i, o))]
    outputs = 8 if channels == 1 else 13
    p.generic("pprr", [rows, outputs, channels, kernel], ins, out, lambda s, a, x, w: a + x * w, init=0.0)


@pytest.mark.sample(10)
@pytest.mark.parametrize("pad", [0, 1, 2])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [2, 3, 4, 5, 7])
@pytest.mark.parametrize(("rows", "channels"), [(1, 3), (5, 1), (38, 3)])
def test_numbers_of_windows_that_overlap(rows: int, channels: int, kernel: int, stride: int, pad: int) -> None:
    inside = (rows - 1) * stride + kernel - 2 * pad
    if inside < 1:
        rows, inside = rows + 3, inside + 3 * stride
    outputs = 8 if channels == 1 else 13
    x, w = drawn(channels, inside), drawn(channels, kernel, outputs)

    def build(p: PrimBuilder) -> None:
        number_windows(p, rows, channels, kernel, stride, pad)

    with patch("landbridge.passes.lower.prims.vector_unit_of", lambda _: NEON):
        (y,) = run_prim(build, [x, w], [((rows, outputs), "float32")], HERE)
    seen = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (pad, pad))), kernel, 1)[:, ::stride]
    wanted = np.einsum("cik,cko->io", seen.astype(np.float64), w)
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5)


def test_numbers_of_a_window_are_loaded_once_for_rows_and_iterations() -> None:
    types = [tensor_type(shape, "float32") for shape in ((3, 77), (3, 3, 13), (38, 13))]
    prim = PrimBuilder("k", types[:2], types[2:])
    number_windows(prim, 38, 3, 3, 2, 0)
    function = prim.finish()
    (nest,) = build_nests(view_prim(function))
    sched = schedule(nest, NEON)
    assert sched.window == SharedWindow(sched.inner[-1], 3, 2, 4) and sched.iterations == 3
    assert schedule(nest, VectorUnit(16, 32)).window is None
    rows, columns = sched.m_runs[0].tile, max(r.tile for r in sched.n_runs)
    assert rows * columns + sched.window.extra_registers(rows, columns) <= NEON.registers


@pytest.mark.parametrize("channels", [5, 9, 129])
def test_the_last_tile_of_channels_is_by_itself(channels: int) -> None:
    """What is left of the channels is read iteration by iteration; all others by lanes of vectors."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 18]> g (float[1,{channels},270] x) => (float[1,32,270] y) {{
            y = Conv<pads=[1, 1]>(x, w)
        }}"""
    )
    x, w = drawn(1, channels, 270), drawn(32, channels, 3)  # short signals are read where they are
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    taken = []

    def noted(*arguments: Any, **named: Any) -> Schedule:
        taken.append(schedule(*arguments, **named))
        return taken[-1]

    with (
        patch("landbridge.passes.lower.prims.vector_unit_of", lambda _: NEON),
        patch("landbridge.passes.lower.tasks.schedule", noted),
    ):
        (y,) = lb.Session(lb.compile(model, HERE))(x)
    assert 4 in {each.iterations for each in taken}
    seen = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1))), 3, 2)
    wanted = np.einsum("bcik,ock->boi", seen.astype(np.float64), w)
    np.testing.assert_allclose(np.asarray(y), wanted, rtol=1e-5, atol=1e-5 * np.sqrt(3 * channels))
