"""Convolutions to few channels on lines of pixels: rows of a tile share the lines that their windows have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from xdsl.dialects import arith, func, vector
from xdsl.dialects.builtin import VectorType

import landbridge as lb
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.stages import view_prim
from landbridge.ir.types import tensor_type
from landbridge.passes.lower.candidates import schedule
from landbridge.passes.lower.nest import build_nests
from landbridge.passes.lower.prims import lower_prim
from landbridge.passes.lower.schedule import VectorUnit
from landbridge.passes.lower.windows import SharedWindow

from .kernels import Array, run_prim

AVX512, AVX2, NEON = VectorUnit(64, 32), VectorUnit(32, 16), VectorUnit(16, 32, by_lane=True)
TARGETS = ("llvm", "llvm -vector-bits=256 -vector-registers=16")


def summed(
    p: PrimBuilder, size: tuple[int, int, int], channels: int, kernel: tuple[int, int], stride: int, pad: int
) -> None:
    """``channels`` of windows over ``size`` channels, lines and pixels, lines ``stride`` apart."""
    c, lines, pixels = size
    x: Any = p.pad(p.inputs[0], [0, pad, pad], [0, pad, pad], 0.0) if pad else p.inputs[0]
    ins = [
        (x, lambda o, y, x, c, a, b: (c, y * stride + a, x + b)),
        (p.inputs[1], lambda o, y, x, c, a, b: (o, c, a, b)),
    ]
    out = [(p.outputs[0], lambda o, y, x, c, a, b: (o, y, x))]
    p.generic("ppprrr", [channels, lines, pixels, c, *kernel], ins, out, lambda s, acc, a, b: acc + a * b, init=0.0)


def data_shape(size: tuple[int, int, int], kernel: tuple[int, int], stride: int, pad: int) -> tuple[int, int, int]:
    c, lines, pixels = size
    return c, (lines - 1) * stride + kernel[0] - 2 * pad, pixels + kernel[1] - 1 - 2 * pad


def function(
    size: tuple[int, int, int], channels: int, kernel: tuple[int, int], stride: int = 1, pad: int = 0
) -> func.FuncOp:
    shapes = data_shape(size, kernel, stride, pad), (channels, size[0], *kernel), (channels, *size[1:])
    types = [tensor_type(shape, "float32") for shape in shapes]
    prim = PrimBuilder("kernel", types[:2], types[2:])
    summed(prim, size, channels, kernel, stride, pad)
    return prim.finish()


def wanted(x: Array, w: Array, stride: int, pad: int) -> Array:
    padded = np.pad(x.astype(np.float64), ((0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], (1, 2))[:, ::stride]
    found: Array = np.einsum("cyxab,ocab->oyx", windows, w)
    return found


@given(
    size=st.tuples(st.integers(1, 3), st.integers(3, 40), st.integers(3, 70)),
    channels=st.integers(1, 9),
    kernel=st.tuples(st.integers(1, 8), st.integers(1, 5)),
    stride=st.integers(1, 3),
    pad=st.integers(0, 2),
    target=st.sampled_from(TARGETS),
)
@example((3, 33, 40), 1, (3, 3), 1, 1, TARGETS[0])
@example((2, 28, 37), 1, (5, 5), 1, 2, TARGETS[1])
@example((1, 17, 35), 3, (7, 1), 2, 0, TARGETS[0])
@example((70, 9, 33), 1, (3, 3), 1, 1, TARGETS[0])
def test_results_are_right_and_nothing_past_the_data_is_read(
    size: tuple[int, int, int], channels: int, kernel: tuple[int, int], stride: int, pad: int, target: str
) -> None:
    """Lowering raises where it cannot prove that an access lies in its buffer."""
    pad = min(pad, (kernel[0] - 1) // 2, (kernel[1] - 1) // 2)
    rng = np.random.default_rng(2)
    x = rng.standard_normal(data_shape(size, kernel, stride, pad), dtype=np.float32)
    w = rng.standard_normal((channels, size[0], *kernel), dtype=np.float32)
    results = [((channels, *size[1:]), "float32")]
    (y,) = run_prim(lambda p: summed(p, size, channels, kernel, stride, pad), [x, w], results, target)
    terms = size[0] * kernel[0] * kernel[1]
    # of sums in any order (Higham, "The accuracy of floating point summation", 1993, 3.4)
    assert (abs(y - wanted(x, w, stride, pad)) <= 2.0**-24 * terms * wanted(abs(x), abs(w), stride, pad) + 1e-30).all()


@pytest.mark.parametrize(("lines", "stride"), [(3, 1), (5, 1), (7, 1), (5, 2)])
@pytest.mark.parametrize("machine", [AVX512, AVX2])
def test_a_line_is_loaded_once_for_all_rows_that_read_it(lines: int, stride: int, machine: VectorUnit) -> None:
    made = function((8, 28, 64), 1, (lines, 3), stride)
    (nest,) = build_nests(view_prim(made))
    sched = schedule(nest, machine)
    assert sched.window is not None and (sched.window.iterations, sched.window.stride) == (lines, stride)
    rows = sched.m_runs[0].tile
    assert rows + sched.window.extra_registers(rows, 1) <= machine.registers
    ops = list(lower_prim(made, machine).walk())
    loads = sum(isinstance(op, vector.LoadOp) for op in ops)
    products = sum(isinstance(op, arith.MulfOp) and isinstance(op.result.type, VectorType) for op in ops)
    tiles, columns = [run.tile for run in sched.m_runs], sum(run.tile for run in sched.n_runs)
    assert products == lines * sum(tiles) * columns
    assert loads == sum(map(sched.window.vectors, tiles)) * columns


@pytest.mark.parametrize(
    ("channels", "kernel", "stride", "machine", "shared"),
    [
        (1, (3, 3), 1, AVX512, True),
        (4, (3, 3), 1, AVX512, True),  # too few sums for additions that take as long as they do
        (8, (3, 3), 1, AVX512, False),  # a vector of pixels is one for all channels
        (1, (3, 3), 3, AVX512, False),  # windows beside each other
        (1, (9, 3), 1, AVX512, False),
        (1, (1, 3), 1, AVX512, False),
        (1, (3, 3), 1, NEON, True),
    ],
)
def test_rows_are_lines_where_these_have_something_in_common(
    channels: int, kernel: tuple[int, int], stride: int, machine: VectorUnit, *, shared: bool
) -> None:
    (nest,) = build_nests(view_prim(function((8, 28, 64), channels, kernel, stride)))
    assert (schedule(nest, machine).window is not None) is shared


def test_vectors_that_rows_read() -> None:
    window = SharedWindow(3, 5, 2)
    read = {row * window.stride + iteration for row in range(6) for iteration in range(window.iterations)}
    assert window.vectors(6) == len(read)


@pytest.mark.sample(3)
@pytest.mark.parametrize("height", [3, 15, 16, 30, 43])
def test_an_open_number_of_lines(height: int) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]> g (float[1,5,H,40] x) => (float[1,1,H,40] y) {
            c = Conv<pads=[2, 1, 2, 1]>(x, w)
            y = Relu(c)
        }"""
    )
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((1, 5, height, 40), np.float32), rng.standard_normal((1, 5, 5, 3), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    (y,) = lb.Session(lb.compile(model, dims={"H": "3..50"}))(x)
    padded = np.pad(x[0], ((0, 0), (1, 1), (0, 0)))
    taller = wanted(padded, w, 1, 1)
    np.testing.assert_allclose(np.asarray(y)[0], np.maximum(taller, 0), rtol=1e-5, atol=1e-4)
