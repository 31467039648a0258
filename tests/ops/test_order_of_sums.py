"""A sum is added up in one order wherever in the result it stands: in tiles and their tails, masks and edges alike."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.ops.float_grids import FLOATS
from tests.ops.one_node import Array, run_node

TARGETS = ["llvm", "c", "llvm -mcpu=haswell", "llvm -mcpu=generic", "c -mcpu=generic -cflags=-DLB_PORTABLE,-O1"]
EXTENTS = [1, 2, 3, 5, 7, 8, 13, 15, 16, 17, 24, 25, 31, 33, 40, 63, 65, 100, 120, 1000]
#: What a result may be off by, of the sum of the magnitudes of its terms.
EPSILON = {"float64": 1e-15, "float32": 2e-6, "float16": 2.0**-11, "bfloat16": 2.0**-8}
DEPTHS = [1, 3, 16, 31, 64, 100, 257, 512, 513, 1000, 2048]


def drawn(count: int) -> list[tuple[str, tuple[int, int, int], bool, str, str]]:
    """(operator, (m, n, k), whether the weights are constant, dtype, target), mixed by a fixed seed."""
    random = Random(1)
    found = []
    for i in range(count):
        m, n, k = random.choice(EXTENTS), random.choice(EXTENTS), random.choice(DEPTHS)
        if m * n * k > 4_000_000:
            m = 1
        dtype = random.choice(["float32", "float32", "float32", "float64", "float16", "bfloat16"])
        op = ("MatMul", "Gemm", "Batched", "Conv", "Turned")[i % 5]
        found.append((op, (m, n, k), random.random() < 0.7, dtype, TARGETS[i % 3 if i % 4 else i % 5]))
    return found


def equal_rows_and_columns(m: int, n: int, k: int, dtype: str) -> tuple[Array, Array]:
    """Matrices [m, k] and [k, n] whose rows, and whose columns, are equal."""
    rng = np.random.default_rng([m, n, k])
    a, b = (rng.normal(size=k).astype(FLOATS[dtype]) for _ in range(2))
    return np.tile(a, (m, 1)), np.ascontiguousarray(np.tile(b, (n, 1)).T)


def product(op: str, a: Array, b: Array, constant: bool, target: str) -> Array:
    """Many sums of the same products."""
    weights = {1} if constant else set()
    if op == "Gemm":
        return run_node("Gemm", [a, b, np.zeros(b.shape[1], a.dtype)], {*weights, 2}, target=target)[0]
    if op == "Turned":
        return run_node("Gemm", [a, np.ascontiguousarray(b.T)], weights, target=target, transB=1)[0]
    if op == "Batched":
        return run_node("MatMul", [np.stack([a] * 3), np.stack([b] * 3)], weights, target=target)[0]
    if op == "Conv":  # 1 x 1 over a picture of two rows
        pixels = np.ascontiguousarray(np.tile(a.T[None, :, None, :], (1, 1, 2, 1)))
        kernels = np.ascontiguousarray(b.T[:, :, None, None])
        return run_node("Conv", [pixels, kernels], weights, target=target, opset=22)[0]  # the first with bfloat16
    return run_node("MatMul", [a, b], weights, target=target)[0]


@pytest.mark.sample(5)
@pytest.mark.parametrize(("op", "sizes", "constant", "dtype", "target"), drawn(150))
def test_equal_terms_give_equal_sums(
    op: str, sizes: tuple[int, int, int], constant: bool, dtype: str, target: str
) -> None:
    a, b = equal_rows_and_columns(*sizes, dtype)
    found = product(op, a, b, constant, target)
    want = float(a[0].astype(np.float64) @ b[:, 0].astype(np.float64))
    assert (found == found.flat[0]).all(), "an element is added up in another order than the others"
    scale = float(np.abs(a[0].astype(np.float64)) @ np.abs(b[:, 0].astype(np.float64)))
    assert abs(float(found.flat[0]) - want) <= scale * EPSILON[dtype]


@pytest.mark.sample(2)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("extent", [992, 1000, 1003])
def test_tails_of_a_classifier(extent: int, target: str) -> None:
    a, b = equal_rows_and_columns(1, extent, 2048, "float32")
    (found,) = run_node("Gemm", [a, b, np.zeros(extent, np.float32)], {1, 2}, target=target)
    assert (found == found.flat[0]).all()


@pytest.mark.sample(2)
@pytest.mark.parametrize("target", ["llvm", "c", "llvm -mcpu=generic"])
@pytest.mark.parametrize(("channels", "outputs", "side"), [(3, 16, 9), (40, 24, 7), (100, 17, 12), (7, 1, 33)])
def test_windows_inside_an_image_give_equal_sums(channels: int, outputs: int, side: int, target: str) -> None:
    rng = np.random.default_rng(channels)
    kernel = np.tile(rng.normal(size=(1, channels, 3, 3)).astype(np.float32), (outputs, 1, 1, 1))
    image = np.broadcast_to(rng.normal(size=(1, channels, 1, 1)).astype(np.float32), (1, channels, side, side)).copy()
    (found,) = run_node("Conv", [image, kernel], {1}, target=target, pads=[1, 1, 1, 1])
    inner = found[..., 1:-1, 1:-1]
    assert (inner == inner.flat[0]).all()
    assert (found == found[:, :1]).all(), "channels of equal weights differ"
    assert (found[:, :, 0, 1:-1] == found[:, :, 0, 1:2]).all()


@pytest.mark.sample(4)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("shape", [(1, 7), (3, 1000), (7, 40, 33), (17, 5000), (33, 12)])
@pytest.mark.parametrize("axis", [0, -1])
def test_equal_rows_are_reduced_same(shape: tuple[int, ...], axis: int, target: str) -> None:
    row = np.random.default_rng(3).normal(size=shape[axis]).astype(np.float32)
    moved = np.tile(row, [*np.delete(shape, axis).tolist(), 1])
    x = np.ascontiguousarray(np.moveaxis(moved, -1, axis))
    for op in ("ReduceSum", "ReduceMean", "ReduceL2"):
        (found,) = run_node(op, [x, np.array([axis])], {1}, target=target)
        assert (found == found.flat[0]).all(), op
