"""Lowered kernels against numpy: contractions, windows, reductions, rows and copies, at awkward sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.ir.prim_builder import PrimBuilder

from .kernels import Array, run_prim

TARGETS = [
    "llvm",
    "llvm -mcpu=haswell",
    "llvm -mcpu=generic",
    "c",
    "c -mcpu=generic -cflags=-DLB_PORTABLE,-O1",
    "opencl",
    "opencl -device-class=cpu -vector-bits=512 -vector-registers=32",
]
RNG = np.random.default_rng(7)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape, dtype=np.float32)


def close(actual: Array, expected: Any, terms: int = 1) -> None:
    """Equal up to float32 rounding of ``terms`` additions: sqrt(terms) x 2^-23 x 4 of the largest magnitude."""
    wide = np.asarray(expected, np.float64)
    limit = 4 * 2.0**-23 * max(terms, 1) ** 0.5 * max(float(np.abs(wide).max(initial=0)), 1e-30)
    assert np.abs(actual.astype(np.float64) - wide).max(initial=0) <= limit


def matmul(p: PrimBuilder, m: int, n: int, k: int) -> None:
    p.generic(
        "ppr",
        [m, n, k],
        [(p.inputs[0], lambda i, j, r: (i, r)), (p.inputs[1], lambda i, j, r: (r, j))],
        [(p.outputs[0], lambda i, j, r: (i, j))],
        lambda s, acc, a, b: acc + a * b,
        init=0.0,
    )


@pytest.mark.sample(5)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("m,n,k", [(40, 120, 30), (1, 100, 64), (5, 7, 3), (33, 17, 1), (1, 1, 9), (14, 65, 5)])
def test_matmul(m: int, n: int, k: int, target: str) -> None:
    a, b = normal(m, k), normal(k, n)
    (c,) = run_prim(lambda p: matmul(p, m, n, k), [a, b], [((m, n), "float32")], target)
    close(c, a.astype(np.float64) @ b, k)


@settings(max_examples=15)
@given(st.integers(1, 40), st.integers(1, 70), st.integers(1, 20))
def test_matmul_of_any_size(m: int, n: int, k: int) -> None:
    a, b = normal(m, k), normal(k, n)
    (c,) = run_prim(lambda p: matmul(p, m, n, k), [a, b], [((m, n), "float32")])
    close(c, a.astype(np.float64) @ b, k)


def windows(x: Array, kernel: int, stride: int, pad: int, value: float) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=value)
    return np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]


@pytest.mark.sample(5)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "h,w,kernel,stride,pad",
    [
        (14, 14, 3, 1, 1),
        (56, 56, 3, 2, 1),
        (7, 7, 5, 1, 2),
        (9, 41, 3, 1, 0),
        (13, 3, 3, 1, 2),
        (8, 8, 1, 1, 0),
        (4, 70, 7, 2, 3),
    ],
)
def test_blocked_convolution_with_epilogue(h: int, w: int, kernel: int, stride: int, pad: int, target: str) -> None:
    block, blocks_in, blocks_out = 16, 2, 3
    channels_in, channels_out = block * blocks_in, block * blocks_out
    x, weights, bias = (
        normal(1, channels_in, h, w),
        normal(channels_out, channels_in, kernel, kernel),
        normal(channels_out),
    )
    oh, ow = (h + 2 * pad - kernel) // stride + 1, (w + 2 * pad - kernel) // stride + 1

    def build(p: PrimBuilder) -> None:
        source, packed, b = p.inputs
        if pad:
            source = p.pad(source, [0, 0, pad, pad, 0], [0, 0, pad, pad, 0], 0.0)
        sums = p.temp((1, blocks_out, oh, ow, block), "float32")
        p.generic(
            "pppprrrrp",
            [1, blocks_out, oh, ow, blocks_in, kernel, kernel, block, block],
            [
                (source, lambda n, o, y, x, c, i, j, ci, oi: (n, c, y * stride + i, x * stride + j, ci)),
                (packed, lambda n, o, y, x, c, i, j, ci, oi: (o, c, i, j, ci, oi)),
            ],
            [(sums, lambda n, o, y, x, c, i, j, ci, oi: (n, o, y, x, oi))],
            lambda s, acc, a, b: acc + a * b,
            init=0.0,
        )
        p.generic(
            "ppppp",
            [1, blocks_out, oh, ow, block],
            [(sums, lambda *d: d), (b, lambda n, o, y, x, i: (o, i))],
            [(p.outputs[0], lambda *d: d)],
            lambda s, a, b: s.maximum(a + b, 0.0),
        )

    blocked = x.reshape(1, blocks_in, block, h, w).transpose(0, 1, 3, 4, 2)
    packed = weights.reshape(blocks_out, block, blocks_in, block, kernel, kernel).transpose(0, 2, 4, 5, 3, 1)
    shape = (1, blocks_out, oh, ow, block)
    (y,) = run_prim(build, [blocked, packed, bias.reshape(blocks_out, block)], [(shape, "float32")], target)
    wide = windows(x.astype(np.float64), kernel, stride, pad, 0.0)
    expected = np.einsum("nchwij,ocij->nohw", wide, weights) + bias[None, :, None, None]
    result = y.transpose(0, 1, 4, 2, 3).reshape(1, channels_out, oh, ow)
    scale = float(np.abs(expected).max())
    assert np.abs(result - np.maximum(expected, 0)).max() <= 4 * 2.0**-23 * (channels_in * kernel**2) ** 0.5 * scale


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("h,w,kernel,stride,pad", [(33, 41, 3, 2, 1), (6, 5, 2, 2, 0), (11, 64, 5, 1, 2)])
def test_max_pool_plain_and_blocked(h: int, w: int, kernel: int, stride: int, pad: int, target: str) -> None:
    x = normal(1, 32, h, w)
    expected = windows(x, kernel, stride, pad, -np.inf).max((4, 5))
    oh, ow = expected.shape[2:]

    def plain(p: PrimBuilder) -> None:
        source = p.pad(p.inputs[0], [0, 0, pad, pad], [0, 0, pad, pad], -np.inf) if pad else p.inputs[0]
        p.generic(
            "pppprr",
            [1, 32, oh, ow, kernel, kernel],
            [(source, lambda n, c, y, x, i, j: (n, c, y * stride + i, x * stride + j))],
            [(p.outputs[0], lambda n, c, y, x, i, j: (n, c, y, x))],
            lambda s, acc, a: s.maximum(acc, a),
            init=-np.inf,
        )

    def blocked(p: PrimBuilder) -> None:
        source = p.pad(p.inputs[0], [0, 0, pad, pad, 0], [0, 0, pad, pad, 0], -np.inf) if pad else p.inputs[0]
        p.generic(
            "pppprrp",
            [1, 2, oh, ow, kernel, kernel, 16],
            [(source, lambda n, c, y, x, i, j, k: (n, c, y * stride + i, x * stride + j, k))],
            [(p.outputs[0], lambda n, c, y, x, i, j, k: (n, c, y, x, k))],
            lambda s, acc, a: s.maximum(acc, a),
            init=-np.inf,
        )

    (y,) = run_prim(plain, [x], [((1, 32, oh, ow), "float32")], target)
    np.testing.assert_array_equal(y, expected)
    packed = x.reshape(1, 2, 16, h, w).transpose(0, 1, 3, 4, 2)
    (z,) = run_prim(blocked, [packed], [((1, 2, oh, ow, 16), "float32")], target)
    np.testing.assert_array_equal(z.transpose(0, 1, 4, 2, 3).reshape(1, 32, oh, ow), expected)


@pytest.mark.sample(6)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows,columns", [(320, 97), (1, 1000), (7, 3), (4, 16)])
def test_softmax_runs_row_by_row(rows: int, columns: int, target: str) -> None:
    x = normal(rows, columns) * 4

    def build(p: PrimBuilder) -> None:
        top, total, powers = p.temp((rows,), "float32"), p.temp((rows,), "float32"), p.temp((rows, columns), "float32")
        row, point = (lambda i, j: (i,)), (lambda i, j: (i, j))
        extents = [rows, columns]
        p.generic("pr", extents, [(p.inputs[0], point)], [(top, row)], lambda s, a, x: s.maximum(a, x), init=-np.inf)
        p.generic("pp", extents, [(p.inputs[0], point), (top, row)], [(powers, point)], lambda s, x, m: s.exp(x - m))
        p.generic("pr", extents, [(powers, point)], [(total, row)], lambda s, a, x: a + x, init=0.0)
        p.generic("pp", extents, [(powers, point), (total, row)], [(p.outputs[0], point)], lambda s, x, t: x / t)

    (y,) = run_prim(build, [x], [((rows, columns), "float32")], target)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    close(y, e / e.sum(1, keepdims=True), columns)


@pytest.mark.parametrize("rows,columns", [(512, 137), (3, 16), (65, 260), (9, 15)])
def test_sum_along_the_contiguous_axis(rows: int, columns: int) -> None:
    a, b = normal(rows, columns), normal(columns)

    def build(p: PrimBuilder) -> None:
        p.generic(
            "pr",
            [rows, columns],
            [(p.inputs[0], lambda i, k: (i, k)), (p.inputs[1], lambda i, k: (k,))],
            [(p.outputs[0], lambda i, k: (i,))],
            lambda s, acc, x, y: acc + x * y,
            init=0.0,
        )

    (y,) = run_prim(build, [a, b], [((rows,), "float32")])
    close(y, a.astype(np.float64) @ b, columns)


@settings(max_examples=25)
@given(st.lists(st.integers(1, 9), min_size=3, max_size=3), st.permutations([0, 1, 2]))
def test_transposed_copy(shape: list[int], order: list[int]) -> None:
    x = normal(*shape)
    target = tuple(shape[i] for i in order)

    def build(p: PrimBuilder) -> None:
        where = [order.index(i) for i in range(3)]
        p.generic(
            "ppp",
            target,
            [(p.inputs[0], lambda *d: [d[i] for i in where])],
            [(p.outputs[0], lambda *d: d)],
            lambda s, x: x,
        )

    (y,) = run_prim(build, [x], [(target, "float32")])
    np.testing.assert_array_equal(y, x.transpose(order))


def test_index_arithmetic_and_integers() -> None:
    x = np.arange(60, dtype=np.int64).reshape(5, 12)

    def build(p: PrimBuilder) -> None:
        def body(s: Any, a: Any) -> Any:
            column = s.cast(s.index(1), "int64")
            picked = s.load(p.inputs[0], [s.index(0), s.binary("rem", s.index(1) * 5, 12)], "int64")
            return a * 3 + column - picked

        p.generic("pp", [5, 12], [(p.inputs[0], lambda i, j: (i, j))], [(p.outputs[0], lambda i, j: (i, j))], body)

    (y,) = run_prim(build, [x], [((5, 12), "int64")])
    columns = np.arange(12)
    np.testing.assert_array_equal(y, x * 3 + columns - x[:, columns * 5 % 12])


def test_padding_that_no_reduction_absorbs() -> None:
    x = normal(3, 10)

    def build(p: PrimBuilder) -> None:
        wide = p.pad(p.inputs[0], [1, 2], [0, 3], 9.0)
        p.generic(
            "pp", [4, 15], [(wide, lambda i, j: (i, j))], [(p.outputs[0], lambda i, j: (i, j))], lambda s, a: a * 2.0
        )

    (y,) = run_prim(build, [x], [((4, 15), "float32")])
    np.testing.assert_array_equal(y, np.pad(x, ((1, 0), (2, 3)), constant_values=9.0) * 2)


def test_integer_division_of_a_length_that_fills_no_vector() -> None:
    x, y = np.arange(1, 12, dtype=np.int32), np.arange(2, 13, dtype=np.int32)

    def build(p: PrimBuilder) -> None:
        point = lambda i: (i,)  # noqa: E731
        p.generic(
            "p", [11], [(p.inputs[0], point), (p.inputs[1], point)], [(p.outputs[0], point)], lambda s, a, b: a / b
        )

    (z,) = run_prim(build, [x, y], [((11,), "int32")])
    np.testing.assert_array_equal(z, x // y)
