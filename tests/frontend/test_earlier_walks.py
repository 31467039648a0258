"""Walks for other sizes take over what earlier ones have computed: the programs are those of whole walks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from landbridge.frontend.onnx import evaluate, graph_walk
from landbridge.frontend.onnx.earlier_walks import EarlierWalks
from landbridge.frontend.onnx.empty_results import (
    BROADCAST,
    ELEMENTWISE,
    FROM_AXIS,
    OF_BATCHES,
    PRODUCTS,
    RECURRENT,
    REDUCTIONS,
)
from landbridge.frontend.onnx.import_request import ImportRequest
from landbridge.frontend.onnx.importer import import_onnx
from landbridge.ir.module import IRModule
from landbridge.ir.types import dtype_of, shape_of
from landbridge.sizes.size import Extent
from landbridge.targets import Target

#: Dtypes of the data of operators that do not take float32.
DTYPES = {
    **dict.fromkeys(("And", "Not", "Or", "Xor"), np.bool_),
    **dict.fromkeys(("BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"), np.uint8),
    **dict.fromkeys(("ConvInteger", "DequantizeLinear", "MatMulInteger", "QLinearConv"), np.uint8),
}
#: Dtypes of results that are not those of the data.
RESULTS = {
    **dict.fromkeys(("Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual"), np.bool_),
    **dict.fromkeys(("Cast", "ConvInteger", "MatMulInteger"), np.int32),
    "DequantizeLinear": np.float32,
    "QuantizeLinear": np.uint8,
}
#: Operands of operators that take more than the data ``x``, which are N x 2 x M x 4, or M x N x 4 for layers of steps.
OPERANDS = {
    **dict.fromkeys(BROADCAST, "x x"),
    **dict.fromkeys(PRODUCTS, "x w"),
    **dict.fromkeys(RECURRENT, "x steps states"),
    **dict.fromkeys(("Conv", "ConvInteger", "ConvTranspose"), "x k"),
    **dict.fromkeys(("DequantizeLinear", "LayerNormalization", "PRelu", "QuantizeLinear"), "x scale"),
    "BatchNormalization": "x c c c c",
    "Concat": "x x",
    "Gemm": "x w",
    "InstanceNormalization": "x c c",
    "QLinearConv": "x one zero k one zero one zero",
    "Resize": "x - factors",
    "Where": "b x x",
    **dict.fromkeys(REDUCTIONS, "x axes"),
}
ATTRIBUTES: dict[str, dict[str, Any]] = {
    **{key: {"kernel_shape": [1, 2]} for key in ("AveragePool", "MaxPool")},
    **{key: {"hidden_size": 3} for key in RECURRENT},
    "BitShift": {"direction": "LEFT"},
    "Cast": {"to": TensorProto.INT32},
    "Concat": {"axis": 1},
    "LRN": {"size": 3},
}
OTHERS = ("Concat", "Gemm", "Transpose")
OPERATORS = (*BROADCAST, *ELEMENTWISE, *OF_BATCHES, *FROM_AXIS, *REDUCTIONS, *RECURRENT, *PRODUCTS, *OTHERS)


def _of_one_node(op_type: str) -> ModelProto:
    dtype = DTYPES.get(op_type, np.float32)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shape: list[int | str] = ["M", "N", 4] if op_type in RECURRENT else ["N", 2, "M", 4]
    shape = ["N", 4] if op_type == "Gemm" else shape
    gates = {"LSTM": 12, "GRU": 9}.get(op_type, 3)
    parameters = {
        "w": np.ones((4, 3), dtype),
        "k": np.ones((2, 2, 1, 2), dtype),
        "c": np.ones(2, np.float32),
        "one": np.float32(1),
        "zero": np.uint8(0),
        "scale": np.float32(1) if "quantize" in op_type.lower() else np.ones(4, np.float32),
        "factors": np.array([1, 1, 2, 2], np.float32),
        "axes": np.array([-1]),
        "steps": np.ones((1, gates, 4), np.float32),
        "states": np.ones((1, gates, 3), np.float32),
    }
    operands = ["" if each == "-" else each for each in OPERANDS.get(op_type, "x").split()]
    node = helper.make_node(op_type, operands, ["y"], **ATTRIBUTES.get(op_type, {}))
    inputs = [helper.make_tensor_value_info("x", kind, shape)]
    if "b" in operands:
        inputs.append(helper.make_tensor_value_info("b", TensorProto.BOOL, shape))
    given = [numpy_helper.from_array(np.asarray(parameters[n]), n) for n in parameters if n in operands]
    of_results = helper.np_dtype_to_tensor_dtype(np.dtype(RESULTS.get(op_type, dtype)))
    output = helper.make_value_info("y", helper.make_tensor_type_proto(of_results, None))
    graph = helper.make_graph([node], op_type, inputs, [output], given)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)


def _spares(model: ModelProto) -> list[IRModule]:
    """Returns the programs of a model for extents of 0."""
    request = ImportRequest(model, (Target("llvm"),), dimensions={}, others=True, spares=True)
    return list(import_onnx(request).spares)


def _results(module: IRModule) -> list[tuple[str, tuple[Extent, ...]]]:
    returned = module.main.body.block.last_op
    assert returned is not None
    return [(dtype_of(each.type), tuple(shape_of(each.type))) for each in returned.operands]


@pytest.mark.sample(6)
@pytest.mark.parametrize("op_type", OPERATORS)
def test_results_without_elements_are_those_of_a_whole_walk(op_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = _of_one_node(op_type)
    found = _spares(model)
    built = [len(module.prims()) for module in found]
    monkeypatch.setattr(EarlierWalks, "without_elements", lambda *_: None)
    whole = _spares(model)
    assert [_results(module) for module in found] == [_results(module) for module in whole]
    assert any(shape[0] == 0 or shape[1] == 0 for module in found for _, shape in _results(module))
    if op_type not in ("Clip", "Concat", "Dropout", "Identity", "Resize"):  # which have no kernel in either
        assert sum(built) < sum(len(module.prims()) for module in whole)


def test_a_sum_over_no_element_is_computed() -> None:
    text = """sums (float[N, 4] x) => (float[4] y) {
        r = Relu(x)
        i = Constant<value_ints = [0]>()
        y = ReduceSum<keepdims = 0>(r, i)
    }"""
    (found,) = _spares(parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}'))
    assert _results(found) == [("float32", (4,))]


def test_sizes_that_an_extent_of_0_changes_are_computed_again() -> None:
    text = """larger (float[N, 4] x) => (float[M, 4] y) {
        r = Relu(x)
        n = Shape<start = 0, end = 1>(r)
        one = Constant<value_ints = [1]>()
        four = Constant<value_ints = [4]>()
        most = Max(n, one)
        shape = Concat<axis = 0>(most, four)
        zero = ConstantOfShape(shape)
        y = Exp(zero)
    }"""
    (found,) = _spares(parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}'))
    assert _results(found) == [("float32", (1, 4))]


def test_a_constant_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """folds (float[N, 4] x) => (float[N, 4] y) <float[4] w = {1.0, 2.0, 3.0, 4.0}> {
        e = Exp(w)
        y = Mul(x, e)
    }"""
    folded: list[str] = []
    evaluated = evaluate.evaluate

    def noted(context: Any, *arguments: Any) -> Any:
        folded.append(context.op_type)
        return evaluated(context, *arguments)

    monkeypatch.setattr(graph_walk, "evaluate", noted)
    (found,) = _spares(parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}'))
    assert (folded, _results(found)) == (["Exp"], [("float32", (0, 4))])
