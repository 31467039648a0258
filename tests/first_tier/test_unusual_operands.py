"""Operands that few models have, on first programs: results are the compiled ones, or the compiler gets the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import landbridge as lb
from landbridge.array_type import Array
from landbridge.first_tier.program import first_program

TARGET = lb.Target("llvm")
FLOATS = np.array([0.5, -2.0, 3.0, 1.25], np.float32)
node = helper.make_node


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    constants: Mapping[str, Array] | None = None,
    opset: int = 17,
) -> bytes:
    given = [_declared(name, each, each.shape) for name, each in inputs.items()]
    results = [_declared(name, each, None) for name, each in outputs.items()]
    tensors = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "tested", given, results, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return bytes(model.SerializeToString())


def _declared(name: str, like: Array, shape: tuple[int, ...] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(like.dtype), shape)


def _compare(model: bytes, *arrays: Array, rtol: float = 1e-5) -> None:
    first = first_program(model, TARGET)
    assert first is not None
    found, wanted = (
        [np.asarray(y) for y in lb.Session(each, num_threads=1)(*arrays)] for each in (first, lb.compile(model, TARGET))
    )
    for result, expected in zip(found, wanted, strict=True):
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(result, expected, rtol=rtol, atol=rtol if expected.dtype.kind == "f" else 0)


@pytest.mark.parametrize(
    ("operator", "shape", "opset"),
    [
        (node("LayerNormalization", ["h", "h", "h"], ["n"]), (4,), 17),
        (node("RMSNormalization", ["h", "h"], ["n"]), (4,), 23),
        (node("Clip", ["h", "limit", "h"], ["n"]), (), 17),
    ],
    ids=lambda each: getattr(each, "op_type", None),
)
def test_an_operand_that_is_another_one_too_is_not_overwritten(
    operator: onnx.NodeProto, shape: tuple[int, ...], opset: int
) -> None:
    x = FLOATS[: int(np.prod(shape))].reshape(shape)
    nodes = [node("Abs", ["x"], ["h"]), operator, node("Neg", ["n"], ["y"])]
    _compare(_model(nodes, {"x": x}, {"y": x}, {"limit": np.array(2, np.float32)}, opset), x)


def test_tensors_without_elements() -> None:
    x = FLOATS.reshape(2, 1, 2)
    nodes = [
        node("Slice", ["x", "two", "two", "two"], ["none"]),
        node("Relu", ["none"], ["still"]),
        node("MatMul", ["still", "w"], ["y"]),
    ]
    constants: dict[str, Array] = {"two": np.array([2], np.int64), "w": np.zeros((0, 3), np.float32)}
    _compare(_model(nodes, {"x": x}, {"y": x}, constants), x)


@pytest.mark.parametrize(
    "operator",
    [node("HardSwish", ["x"], ["y"]), node("QuantizeLinear", ["x", "s", "zero"], ["y"])],
    ids=lambda each: each.op_type,
)
def test_scalars(operator: onnx.NodeProto) -> None:
    x = np.array(1.5, np.float32)
    constants: dict[str, Array] = {"s": np.array(0.5, np.float32), "zero": np.array(3, np.int8)}
    result = x if operator.op_type == "HardSwish" else constants["zero"]
    _compare(_model([operator], {"x": x}, {"y": result}, constants), x)


def test_a_scalar_is_quantized_by_its_range() -> None:
    x = np.array(1.5, np.float32)
    results: dict[str, Array] = {"y": np.array(0, np.uint8), "s": x, "zero": np.array(0, np.uint8)}
    _compare(_model([node("DynamicQuantizeLinear", ["x"], list(results))], {"x": x}, results), x)


@pytest.mark.parametrize(
    ("operator", "operands"),
    [
        *((node(name, ["a"], ["y"]), [np.array([True])]) for name in ("Neg", "Sign", "Abs", "Relu", "BitwiseNot")),
        *((node(name, ["a"], ["y"]), [np.array([1])]) for name in ("Round", "Floor", "Ceil", "Not")),
        *((node(name, ["a", "b"], ["y"]), [np.array([True])] * 2) for name in ("Add", "Sub", "Mod", "BitwiseAnd")),
        *((node(name, ["a", "b"], ["y"]), [FLOATS, FLOATS]) for name in ("Gather", "GatherElements", "GatherND")),
        *((node(name, ["a", "b", "c"], ["y"]), [FLOATS] * 3) for name in ("ScatterElements", "ScatterND")),
        (node("And", ["a", "b"], ["y"]), [FLOATS, FLOATS]),
        (node("ScatterND", ["a", "b", "c"], ["y"]), [FLOATS, np.array(1), FLOATS[0]]),
        (node("ScatterND", ["a", "b", "c"], ["y"]), [FLOATS, np.array([[1]]), FLOATS]),
        (node("Trilu", ["a"], ["y"]), [FLOATS]),
        (node("LRN", ["a"], ["y"], size=1), [FLOATS]),
    ],
    ids=lambda each: getattr(each, "op_type", None),
)
def test_a_model_that_is_not_legal_is_left_to_the_compiler(operator: onnx.NodeProto, operands: list[Array]) -> None:
    inputs = dict(zip("abc", operands, strict=False))
    assert first_program(_model([operator], inputs, {"y": operands[0]}, opset=18), TARGET) is None


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_at_their_limits(dtype: type[np.integer[Any]]) -> None:
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    a = np.array([0, 1, -1, -1, 2, -2, 5, 0, 7, -7, least, most], dtype)
    b = np.array([-1, -3, -3, -2, -1, -1, 0, 0, 0, 2, -1, -1], dtype)
    nodes = [node(name, ["a", "b"], [name]) for name in ("Pow", "Div", "Mod")]
    _compare(_model(nodes, {"a": a, "b": b}, {"Pow": a, "Div": a, "Mod": a}), a, b)


def test_a_slice_from_before_the_first_element_backwards() -> None:
    constants = {"start": np.array([-9], np.int64), "end": np.array([-20], np.int64), "axis": np.array([0], np.int64)}
    constants["step"] = -np.ones(1, np.int64)
    _compare(_model([node("Slice", ["x", *constants], ["y"])], {"x": FLOATS}, {"y": FLOATS}, constants), FLOATS)


@pytest.mark.parametrize("name", ["HardSigmoid", "LeakyRelu"])
def test_defaults_of_attributes_are_those_of_float32(name: str) -> None:
    x = FLOATS.astype(np.float64)
    _compare(_model([node(name, ["x"], ["y"])], {"x": x}, {"y": x}), x, rtol=1e-14)


@pytest.mark.parametrize(
    ("operator", "dtype", "numbers"),
    [
        (node("Erf", ["x"], ["y"]), np.float64, []),
        (node("Gelu", ["x"], ["y"]), np.float64, []),
        (node("Unsqueeze", ["x", "numbers"], ["y"]), np.float32, [0, 0]),
        (node("Pad", ["x", "numbers"], ["y"]), np.float32, [-5, 6]),
        (node("Pad", ["x", "numbers"], ["y"], mode="edge"), np.float32, [1, -4]),
        (node("Reshape", ["x", "numbers"], ["y"]), np.float32, [4] + [1] * 70),
        (node("Upsample", ["x"], ["y"], scales=[1e13]), np.float32, []),
        (node("LRN", ["x"], ["y"], size=0), np.float32, []),
    ],
    ids=lambda each: getattr(each, "op_type", None),
)
def test_it_leaves_to_the_compiler(operator: onnx.NodeProto, dtype: type[np.floating[Any]], numbers: list[int]) -> None:
    x: Array = FLOATS.astype(dtype)
    constants = {"numbers": np.array(numbers, np.int64)} if numbers else {}
    assert first_program(_model([operator], {"x": x}, {"y": x}, constants, 20), TARGET) is None


def test_a_running_sum_of_no_elements_is_left_to_the_compiler() -> None:
    nodes = [node("Slice", ["x", "far", "far"], ["none"]), node("CumSum", ["none", "axis"], ["y"], exclusive=1)]
    constants = {"far": np.array([9], np.int64), "axis": np.array(0, np.int64)}
    assert first_program(_model(nodes, {"x": FLOATS}, {"y": FLOATS}, constants), TARGET) is None


def test_an_output_that_is_listed_twice_is_left_to_the_compiler() -> None:
    model = onnx.load_from_string(_model([node("Relu", ["x"], ["y"])], {"x": FLOATS}, {"y": FLOATS}))
    model.graph.output.append(model.graph.output[0])
    assert first_program(model.SerializeToString(), TARGET) is None
