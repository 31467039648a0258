"""Nodes of constants: what they are folded to is what their kernels give in a run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from xdsl.ir import SSAValue

import landbridge as lb
from landbridge.errors import LandbridgeError
from landbridge.frontend.onnx.import_request import ImportRequest
from landbridge.frontend.onnx.importer import import_onnx
from landbridge.ir.graph_ops import CallOp, ConstantOp, ViewOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import shape_of
from landbridge.targets import Target
from tests.ops import node_cases

Array = np.ndarray[Any, Any]
pytestmark = [
    pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning"),
    pytest.mark.filterwarnings("ignore::landbridge.ModelWarning"),
]

#: What draws random numbers, trains, or computes with what no program holds.
_OTHERS = "_expanded|training|bernoulli|random|multinomial|momentum|adagrad|adam|optional|string|STRING|_seq|sequence"
#: Kernels that are scalar code with loops of its own, which the interpreter does not run: they are left to runs.
_LEFT_TO_RUNS = "nonmaxsuppression|maxunpool|tfidfvectorizer|tree_ensemble_set"

_SUM = "adds up floats: rounded once where it is folded, after each term by a kernel, in the order of its schedule"
_FORMS = "of constants it is another form of the same numbers: factors are combined in f64 before they are rounded"
_CHAIN = "several kernels, of which a run joins products of one and sums of the next into operations that round once"
#: Operators whose results may differ in their last bits, and why. All others give the same bits.
ROUNDED = {
    **dict.fromkeys(
        ("AveragePool", "Conv", "ConvTranspose", "DFT", "Einsum", "Gemm", "GlobalAveragePool", "GroupNormalization",
         "InstanceNormalization", "LayerNormalization", "LpNormalization", "LpPool", "MatMul",
         "MeanVarianceNormalization", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean",
         "ReduceSum", "ReduceSumSquare", "RMSNormalization", "GRU", "LSTM", "RNN", "LogSoftmax", "Softmax", "Resize",
         "Upsample", "GridSample", "STFT", "LRN", "RoiAlign", "DeformConv"),
        _SUM,
    ),
    "BatchNormalization": _FORMS,
    **dict.fromkeys(
        ("AffineGrid", "Attention", "BlackmanWindow", "CausalConvWithState", "FlexAttention", "HammingWindow",
         "HannWindow", "LinearAttention", "NegativeLogLikelihoodLoss", "RotaryEmbedding", "SoftmaxCrossEntropyLoss"),
        _CHAIN,
    ),
}  # fmt: skip
#: Of the largest magnitude of a result: sums of these cases have up to 500 terms, whose errors grow with the root of
#: that and of which half an eps is the first.
_MOST_EPS = 4


def _is_foldable(case: Any) -> bool:
    """Whether the inputs of a node test can be initializers, numbers of numpy and bool."""
    return case.model is not None and not any(
        isinstance(v, list | type(None)) or (not isinstance(v, TensorProto) and np.asarray(v).dtype.kind in "OSU")
        for v in case.data_sets[0][0]
    )


NAMES = sorted(
    n for n, case in node_cases.cases().items() if not re.search(f"{_OTHERS}|{_LEFT_TO_RUNS}", n) and _is_foldable(case)
)


def with_constants(model: ModelProto, given: Mapping[str, Array]) -> ModelProto:
    """``model`` with ``given`` as initializers and no inputs of these names."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    left = [value for value in model.graph.input if value.name not in given]
    del made.graph.input[:]
    made.graph.input.extend(left)
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in given.items())
    return made


def folded_outputs(module: IRModule) -> list[Array]:
    """The outputs of a module of constants alone; AssertionError where one is computed by a run."""

    def known(value: SSAValue) -> Array:
        op = value.owner
        if isinstance(op, ViewOp):
            return known(op.source).reshape(shape_of(op.result.type))
        if isinstance(op, CallOp) and op.callee_name.startswith("copy"):  # outputs are memory of their own
            return known(op.inputs[0])
        assert isinstance(op, ConstantOp), f"{op} is left to runs"
        return module.constants[op.symbol_name]

    last = module.main.body.block.last_op
    assert last is not None
    return [known(value) for value in last.operands]


def of_a_run(model: ModelProto, given: Mapping[str, Array]) -> list[Array]:
    """The outputs where all inputs come with the run; those after the first are constants where they have to be."""
    try:
        return _ran(model, given)
    except LandbridgeError:
        first = next(name for name in model.graph.node[0].input if name)
        fixed = with_constants(model, {name: array for name, array in given.items() if name != first})
        return _ran(fixed, {first: given[first]})


def _ran(model: ModelProto, given: Mapping[str, Array]) -> list[Array]:
    session = lb.Session(lb.compile(model, shapes={n: a.shape for n, a in given.items()}), num_threads=1)
    return [np.array(output) for output in session(*(given[spec.name] for spec in session.inputs))]


def check_equal(found: Sequence[Array], wanted: Sequence[Array], op_types: set[str]) -> None:
    """The same bits, or within ``_MOST_EPS`` for operators of ``ROUNDED``, and for all where nothing is fused."""
    fuses = any(word in str(Target("llvm")) for word in ("+fma,", "aarch64"))
    assert [(a.shape, a.dtype) for a in found] == [(a.shape, a.dtype) for a in wanted]
    for a, b in zip(found, wanted, strict=True):
        if a.tobytes() == b.tobytes():
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        assert a.dtype.kind in "fV", f"{a} differs from {b}"
        if (not fuses or op_types <= ROUNDED.keys()) and np.array_equal(np.isfinite(x), np.isfinite(y)):
            finite = np.isfinite(x)
            eps = {2: 2.0**-8 if a.dtype.kind == "V" else 2.0**-10, 4: 2.0**-23, 8: 2.0**-52}[a.dtype.itemsize]
            bound = _MOST_EPS * eps * np.abs(y[finite]).max(initial=0)
            np.testing.assert_allclose(x[finite], y[finite], rtol=0, atol=bound)
            x, y = x[~finite], y[~finite]
        np.testing.assert_array_equal(x, y)  # NaN and zeros of either sign are equal


@pytest.mark.sample(11)
@pytest.mark.parametrize("name", NAMES)
def test_folded_as_run(name: str) -> None:
    case = node_cases.cases()[name]
    values = [_array(v) for v in case.data_sets[0][0]]
    given = {v.name: a for v, a in zip(case.model.graph.input, values, strict=True)}
    fixed = with_constants(case.model, given)
    try:
        wanted = of_a_run(case.model, given)
    except LandbridgeError:
        elements = [value.type.tensor_type.elem_type for value in (*case.model.graph.input, *case.model.graph.output)]
        if not _is_for_constants(elements[0]) or _is_for_constants(elements[-1]):
            with pytest.raises(LandbridgeError):
                import_onnx(ImportRequest(fixed, (Target("llvm"),)))
            return
        wanted = [_array(v) for v in case.data_sets[0][1]]
    found = folded_outputs(import_onnx(ImportRequest(fixed, (Target("llvm"),))).module)
    check_equal(found, wanted, {node.op_type for node in case.model.graph.node})


def _is_for_constants(element: int) -> bool:
    """Whether values of an element type of ONNX can be constants, and nothing else of a program."""
    return bool(re.match("U?INT[24]$|FLOAT8E[45]", TensorProto.DataType.Name(element)))  # type: ignore[arg-type]


def _array(value: Any) -> Array:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def r(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


#: Nodes that onnx's reference evaluator evaluates otherwise: (operator, opset, inputs, attributes, outputs).
NODES: dict[str, tuple[str, int, list[Array | None], dict[str, Any], int]] = {
    **{
        f"{op} of opset {opset}, {of}": (op, opset, [r(2, 3, 4, 2)], attributes, 1)
        for op in ("Softmax", "LogSoftmax", "Hardmax")
        for opset, of, attributes in ((11, "axis 0", {"axis": 0}), (12, "axis 1", {}), (12, "axis 2", {"axis": 2}))
    },
    "mean of f16": ("ReduceMean", 13, [np.full((2, 2000), 40, np.float16)], {"axes": [1]}, 1),
    "length of f16": ("ReduceL2", 13, [(r(8, 256, 11) * 7).astype(np.float16)], {"axes": [1, 2]}, 1),
    "LayerNormalization of f16": (
        "LayerNormalization", 17, [(r(2, 300) * 300).astype(np.float16), np.ones(300, np.float16)], {}, 1,
    ),
    "InstanceNormalization of f16": (
        "InstanceNormalization", 17,
        [(r(1, 2, 40, 40) * 200).astype(np.float16), np.ones(2, np.float16), np.zeros(2, np.float16)], {}, 1,
    ),
    "running sum of f16": ("CumSum", 14, [np.full(4000, 0.1, np.float16), np.array(0)], {}, 1),
    "GRU, lengths": (
        "GRU", 14, [r(5, 3, 2), r(1, 12, 2), r(1, 12, 4), None, np.array([3, 5, 1], np.int32)], {"hidden_size": 4}, 2,
    ),
    "LSTM, lengths": (
        "LSTM", 14, [r(5, 3, 2), r(1, 16, 2), r(1, 16, 4), None, np.array([3, 5, 1], np.int32)], {"hidden_size": 4}, 3,
    ),
    "LSTM, activations": (
        "LSTM", 14, [r(5, 3, 2), r(1, 16, 2), r(1, 16, 4)],
        {"hidden_size": 4, "activations": ["HardSigmoid", "Softsign", "Tanh"]}, 3,
    ),
    "RNN, clip": ("RNN", 14, [r(5, 3, 2) * 3, r(1, 4, 2), r(1, 4, 4)], {"hidden_size": 4, "clip": 0.5}, 2),
    "QuantizeLinear of infinity": (
        "QuantizeLinear", 13, [np.array([3, np.inf, -np.inf], np.float32), np.float32(0.5), np.int8(1)], {}, 1,
    ),
    "LRN": ("LRN", 13, [np.abs(r(1, 5, 2, 2))], {"size": 3}, 1),
    "LpNormalization, p = 1": ("LpNormalization", 22, [r(2, 3)], {"p": 1, "axis": 0}, 1),
    "ConvTranspose of one axis, groups and bias": (
        "ConvTranspose", 13, [r(1, 4, 5), r(4, 1, 4), r(4)],
        {"group": 4, "strides": [3], "pads": [1, 0], "output_padding": [2]}, 1,
    ),
}  # fmt: skip


def node_model(op: str, opset: int, inputs: Sequence[Array | None], attributes: Any, outputs: int) -> ModelProto:
    """A model of one node, whose inputs are inputs of the model: x0, x1, and so on."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    given = [(n, np.asarray(x)) for n, x in zip(names, inputs, strict=True) if x is not None]
    graph = helper.make_graph(
        [helper.make_node(op, names, [f"y{i}" for i in range(outputs)], **attributes)],
        "node",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given],
        [onnx.ValueInfoProto(name="y0")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return onnx.shape_inference.infer_shapes(made)


@pytest.mark.sample(13)
@pytest.mark.parametrize("name", NODES)
def test_as_onnxruntime(name: str) -> None:
    op, opset, inputs, attributes, outputs = NODES[name]
    made = node_model(op, opset, inputs, attributes, outputs)
    given = {f"x{i}": np.asarray(x) for i, x in enumerate(inputs) if x is not None}
    (wanted,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, given)
    (found,) = folded_outputs(import_onnx(ImportRequest(with_constants(made, given), (Target("llvm"),))).module)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    # Two places of f16, four of f32, of the largest: both sum up to 4000 terms, each in an order of its own.
    eps = np.finfo(found.dtype).eps * 4 if found.dtype.kind == "f" else 0
    bound = eps * np.abs(wanted.astype(np.float64)).max() if eps else 0
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=0, atol=bound)


def test_integers_are_resized_as_in_a_run() -> None:
    x = np.arange(24, dtype=np.int32).reshape(1, 1, 4, 6) ** 2
    made = node_model("Resize", 13, [x, None, None, np.array([1, 1, 7, 11])], {"mode": "linear"}, 1)
    sizes = {"x3": np.array([1, 1, 7, 11])}
    wanted = _ran(with_constants(made, sizes), {"x0": x})
    found = folded_outputs(
        import_onnx(ImportRequest(with_constants(made, {"x0": x, **sizes}), (Target("llvm"),))).module
    )
    np.testing.assert_array_equal(found[0], wanted[0])


def test_what_takes_too_long_is_left_to_runs() -> None:
    """A recurrent layer of more steps than are taken one after the other while a model is compiled."""
    made = node_model("RNN", 14, [r(9000, 1, 1), r(1, 2, 1), r(1, 2, 2)], {"hidden_size": 2}, 1)
    given = {"x0": r(9000, 1, 1), "x1": r(1, 2, 1), "x2": r(1, 2, 2)}
    module = import_onnx(ImportRequest(with_constants(made, given), (Target("llvm"),))).module
    with pytest.raises(AssertionError, match="left to runs"):
        folded_outputs(module)
