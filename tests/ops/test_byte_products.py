"""Integer products of bytes against numpy's int64: shapes, tails, signs, zero points, padding, groups, guard pages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import landbridge as lb
from tests.ops.elementwise_models import KINDS
from tests.ops.one_node import one_node, run_node
from tests.witnesses.guard_pages import SIDES, GuardedRun, in_child

Array = np.ndarray[Any, Any]

#: Rows, depth and columns: tails of words, of vectors and of tiles, and none.
SHAPES = [(1, 768, 96), (5, 7, 9), (3, 130, 33), (17, 64, 16), (1, 3, 1), (4, 1, 40), (29, 12, 100)]
#: Data and weights: dtypes, and zero points. The last weights fit no byte without their zero point.
KINDS_OF_BYTES = [
    ("uint8", 0, "int8", 0),
    ("uint8", 255, "int8", 0),
    ("int8", -128, "int8", 0),
    ("int8", 5, "uint8", 128),
    ("uint8", 3, "int8", 7),
]


def drawn(dtype: str, shape: tuple[int, ...], seed: int) -> Array:
    """Every byte, the ends more often."""
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    values = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    ends = rng.choice(np.array([info.min, info.max], dtype), shape)
    return np.where(rng.random(shape) < 0.2, ends, values)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("shape", "bytes_", "kind"), list(product(SHAPES, KINDS_OF_BYTES, KINDS)))
def test_products(shape: tuple[int, int, int], bytes_: tuple[str, int, str, int], kind: str) -> None:
    rows, depth, columns = shape
    dtype, zero, of_weights, weight_zero = bytes_
    x, w = drawn(dtype, (rows, depth), 1), drawn(of_weights, (depth, columns), 2)
    arrays = [x, w, np.array(zero, dtype), np.array(weight_zero, of_weights)]
    (found,) = run_node("MatMulInteger", arrays, {1, 2, 3}, target=kind)
    np.testing.assert_array_equal(found, (x.astype(np.int64) - zero) @ (w.astype(np.int64) - weight_zero))


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("known", [True, False])
def test_a_zero_point_for_each_row_and_leading_axes(dtype: str, known: bool) -> None:
    x, w = drawn(dtype, (2, 3, 5, 21), 1), drawn("int8", (21, 18), 2)
    zeros = drawn(dtype, (5,), 3)
    if known:
        zeros = zeros[:1]
    constants = {1, 2} if known else {1}
    rows = x[0, 0] if not known else x
    (found,) = run_node("MatMulInteger", [rows, w, zeros], constants)
    np.testing.assert_array_equal(found, (rows.astype(np.int64) - zeros[:, None]) @ w.astype(np.int64))


#: As above; and weights that fit a byte only as they are.
KINDS_OF_RUNS = [*KINDS_OF_BYTES, ("uint8", 200, "uint8", 3), ("int8", -3, "uint8", 255)]


@pytest.mark.sample(2, rarer=3)
@pytest.mark.parametrize(("shape", "bytes_", "kind"), list(product(SHAPES, KINDS_OF_RUNS, KINDS)))
@pytest.mark.parametrize("constants", [(), (1,), (1, 3)])
def test_products_that_the_run_brings(
    shape: tuple[int, int, int], bytes_: tuple[str, int, str, int], kind: str, constants: tuple[int, ...]
) -> None:
    rows, depth, columns = shape
    dtype, zero, of_weights, weight_zero = bytes_
    x, w = drawn(dtype, (rows, depth), 1), drawn(of_weights, (depth, columns), 2)
    arrays = [x, w, np.array(zero, dtype), np.array(weight_zero, of_weights)]
    (found,) = run_node("MatMulInteger", arrays, constants, target=kind)
    np.testing.assert_array_equal(found, (x.astype(np.int64) - zero) @ (w.astype(np.int64) - weight_zero))


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["llvm", "c"])
@pytest.mark.parametrize("matrices", [True, False])
def test_products_of_a_run_with_leading_axes_and_zero_points_of_rows_and_columns(matrices: bool, kind: str) -> None:
    x, w = drawn("int8", (2, 3, 5, 21), 1), drawn("uint8", (2, 3, 21, 18) if matrices else (21, 18), 2)
    zeros = drawn("int8", (5,), 3), drawn("uint8", (18,), 4)
    (found,) = run_node("MatMulInteger", [x, w, *zeros], target=kind)
    want = (x.astype(np.int64) - zeros[0][:, None]) @ (w.astype(np.int64) - zeros[1])
    np.testing.assert_array_equal(found, want)


def open_product(data: list[int | str], weights: list[int | str]) -> ModelProto:
    """A model of MatMulInteger of int8 data and uint8 weights, with a zero point for each of the two."""
    kinds = {"a": (TensorProto.INT8, data), "b": (TensorProto.UINT8, weights)}
    kinds |= {"p": (TensorProto.INT8, []), "q": (TensorProto.UINT8, []), "y": (TensorProto.INT32, [None] * len(data))}
    infos = {name: helper.make_tensor_value_info(name, *kind) for name, kind in kinds.items()}
    node = helper.make_node("MatMulInteger", ["a", "b", "p", "q"], ["y"])
    graph = helper.make_graph([node], "open", [infos[name] for name in "abpq"], [infos["y"]])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("data", "weights"), [(["B", 5, "K"], ["B", "K", 7]), (["B", "M", 12], ["B", 12, "N"]), (["M", "K"], ["K", "N"])]
)
def test_products_of_open_extents(data: list[int | str], weights: list[int | str]) -> None:
    session = lb.Session(lb.compile(open_product(data, weights)))
    for depth in (3, 8, 10):
        sizes: dict[int | str, int] = {"B": 2, "K": depth, "M": 4, "N": 9, 5: 5, 7: 7, 12: 12}
        a = drawn("int8", tuple(sizes[e] for e in data), depth)
        b = drawn("uint8", tuple(sizes[e] for e in weights), depth)
        (found,) = session(a, b, np.array(-7, np.int8), np.array(200, np.uint8))
        np.testing.assert_array_equal(np.asarray(found), (a.astype(np.int64) + 7) @ (b.astype(np.int64) - 200))


@pytest.mark.parametrize("constants", [{1, 2}, {2}])
def test_no_terms(constants: set[int]) -> None:
    x, w = np.empty((3, 0), np.uint8), np.empty((0, 5), np.int8)
    (found,) = run_node("MatMulInteger", [x, w, np.array(7, np.uint8)], constants)
    np.testing.assert_array_equal(found, np.zeros((3, 5), np.int32))


def test_sums_wrap_as_int32_does() -> None:
    depth = 1 << 17
    x, w = np.full((1, depth), 255, np.uint8), np.full((depth, 4), -128, np.int8)
    (found,) = run_node("MatMulInteger", [x, w], {1})
    np.testing.assert_array_equal(found, np.full((1, 4), 255 * -128 * depth).astype(np.int32))


#: Channels, height, width, outputs, kernel, groups, and attributes.
CONVOLUTIONS = [
    (64, 5, 9, 40, (1, 1), 1, {}),
    (20, 7, 11, 64, (3, 3), 1, {"pads": [1, 1, 1, 1]}),
    (3, 15, 17, 16, (3, 3), 1, {"pads": [0, 2, 1, 1], "strides": [2, 2]}),
    (6, 7, 8, 10, (3, 2), 1, {"dilations": [2, 1], "strides": [1, 2]}),
    (16, 6, 6, 24, (3, 3), 2, {"pads": [1, 1, 1, 1]}),
    (10, 6, 6, 20, (3, 3), 5, {"pads": [1, 1, 1, 1]}),
    (19, 8, 9, 19, (3, 3), 19, {"pads": [1, 1, 1, 1]}),
]


def convolved(x: Array, w: Array, group: int, attributes: dict[str, Any]) -> Array:
    """The convolution of int64, tap by tap."""
    top, left, bottom, right = attributes.get("pads", [0] * 4)
    (down, along), (step_h, step_w) = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    outputs, inner, *kernel = w.shape
    height = (x.shape[2] - (kernel[0] - 1) * step_h - 1) // down + 1
    width = (x.shape[3] - (kernel[1] - 1) * step_w - 1) // along + 1
    grouped = x.reshape(x.shape[0], group, inner, *x.shape[2:])
    y = np.zeros((x.shape[0], group, outputs // group, height, width), np.int64)
    for i, j in product(*map(range, kernel)):
        seen = grouped[..., i * step_h :: down, j * step_w :: along][..., :height, :width]
        y += np.einsum("ngchw,goc->ngohw", seen, w[..., i, j].reshape(group, outputs // group, inner))
    return y.reshape(x.shape[0], outputs, height, width)


@pytest.mark.sample(2, rarer=3)
@pytest.mark.parametrize(("case", "bytes_", "kind"), list(product(CONVOLUTIONS, KINDS_OF_RUNS, KINDS)))
def test_convolutions(case: tuple[Any, ...], bytes_: tuple[str, int, str, int], kind: str) -> None:
    channels, height, width, outputs, kernel, group, attributes = case
    dtype, zero, of_weights, weight_zero = bytes_
    x = drawn(dtype, (2, channels, height, width), 1)
    w = drawn(of_weights, (outputs, channels // group, *kernel), 2)
    arrays = [x, w, np.array(zero, dtype), np.array(weight_zero, of_weights)]
    (found,) = run_node("ConvInteger", arrays, {1, 2, 3}, target=kind, group=group, **attributes)
    want = convolved(x.astype(np.int64) - zero, w.astype(np.int64) - weight_zero, group, attributes)
    np.testing.assert_array_equal(found, want)


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", KINDS)
def test_padding_with_a_zero_point_that_the_run_knows(kind: str) -> None:
    x, w, attributes = drawn("uint8", (1, 8, 6, 6), 1), drawn("int8", (16, 8, 3, 3), 2), {"pads": [1, 0, 2, 1]}
    (found,) = run_node("ConvInteger", [x, w, np.array(9, np.uint8)], {1}, target=kind, **attributes)
    np.testing.assert_array_equal(found, convolved(x.astype(np.int64) - 9, w.astype(np.int64), 1, attributes))


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("constants", [{1, 3}, {1, 2, 3}])
def test_weights_whose_zero_points_fit_no_byte(kind: str, constants: set[int]) -> None:
    """As quantization of weights to uint8 leaves them, with a zero point for each output."""
    x, w, attributes = drawn("uint8", (2, 9, 6, 7), 1), drawn("uint8", (17, 9, 3, 3), 2), {"pads": [1, 0, 2, 1]}
    zeros = np.array(9, np.uint8), drawn("uint8", (17,), 3)
    (found,) = run_node("ConvInteger", [x, w, *zeros], constants, target=kind, **attributes)
    centered = w.astype(np.int64) - zeros[1].reshape(-1, 1, 1, 1)
    np.testing.assert_array_equal(found, convolved(x.astype(np.int64) - 9, centered, 1, attributes))


def guarded(op: str, arrays: list[Array], attributes: dict[str, Any], constants: Sequence[int] = (1, 2)) -> None:
    """Every operand of every kernel beside inaccessible pages, on either side."""
    executable = lb.compile(one_node(op, arrays, constants, **attributes))
    given = [a for i, a in enumerate(arrays) if i not in constants]
    (plain,) = (np.array(y) for y in lb.Session(executable, num_threads=1)(*given))
    for side in SIDES:
        (found,) = GuardedRun(executable, side)(*given)
        np.testing.assert_array_equal(found, plain)


@pytest.mark.parametrize("shape", [(5, 7, 9), (3, 130, 33), (1, 3, 1)])
def test_products_read_nothing_beside_their_operands(shape: tuple[int, int, int]) -> None:
    rows, depth, columns = shape
    arrays = [drawn("uint8", (rows, depth), 1), drawn("int8", (depth, columns), 2), np.array(3, np.uint8)]
    in_child(guarded, "MatMulInteger", arrays, {})
    in_child(guarded, "MatMulInteger", arrays, {}, ())


@pytest.mark.parametrize("case", CONVOLUTIONS[1:4])
def test_convolutions_read_nothing_beside_their_operands(case: tuple[Any, ...]) -> None:
    channels, height, width, outputs, kernel, group, attributes = case
    x, w = drawn("int8", (1, channels, height, width), 1), drawn("int8", (outputs, channels // group, *kernel), 2)
    in_child(guarded, "ConvInteger", [x, w, np.array(-3, np.int8)], {"group": group, **attributes})
