"""Runs in which data decide that there is nothing, against onnxruntime.

``s`` are the rows of ``x`` that have a number above 0, ``at`` says which these are. ``t`` has elements however many
there are, so that the piece that computes ``e`` is run, not left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb
from landbridge.compiler import compilation
from landbridge.errors import AccessError

pytestmark = pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")

_REDUCTIONS = ("Sum", "Prod", "L1", "L2", "Max", "Min", "SumSquare", "LogSum", "LogSumExp")

#: Nodes that make ``e``. A mean over nothing is left out: ONNX does not define it, NaN here and 0 in onnxruntime.
CASES = {
    **{f"Reduce{each}": f"e = Reduce{each}<keepdims=0>(s, i0)" for each in _REDUCTIONS},
    **{f"Reduce{each}_keeps": f"e = Reduce{each}<keepdims=1>(s, i0)" for each in _REDUCTIONS},
    **{f"Reduce{each}_all": f"e = Reduce{each}<keepdims=0>(s)" for each in _REDUCTIONS},
    **{f"Reduce{each}_of_none": f"e = Reduce{each}<keepdims=0>(s, i1)" for each in _REDUCTIONS},
    "ReduceMax_int64": "q = Cast<to=7>(s) e = ReduceMax<keepdims=0>(q, i0)",
    "ReduceMin_int32": "q = Cast<to=6>(s) e = ReduceMin<keepdims=0>(q, i0)",
    **{each: f"e = {each}(s)" for each in ("Relu", "Sigmoid", "Exp", "Erf", "Identity", "Hardmax", "Trilu")},
    **{each: f"e = {each}(s, row)" for each in ("Add", "Mul", "Div", "PRelu")},
    "Not": "b = Greater(s, z) e = Not(b)",
    "Where": "b = Greater(s, row) e = Where(b, s, row)",
    "Softmax": "e = Softmax<axis=1>(s)",
    "Softmax_over_them": "e = Softmax<axis=0>(s)",
    "ArgMax": "e = ArgMax<axis=1>(s)",
    "TopK": "n = Shape<start=0,end=1>(s) most = Min(n, i2) e, f = TopK<axis=0>(s, most)",
    "Gather": "e = Gather<axis=0>(base, at)",
    "Gather_columns": "columns = Constant<value_ints=[3,1]>() e = Gather<axis=1>(s, columns)",
    "Gather_from_them": "n = Size(s) k = Div(n, four) r = Range(zero, k, one) e = Gather<axis=0>(s, r)",
    "GatherND": "u = Unsqueeze(at, i1) e = GatherND(base, u)",
    "Concat": "e = Concat<axis=0>(row, s, row, s)",
    "Concat_columns": "e = Concat<axis=1>(s, s)",
    "Slice": "big = Constant<value_ints=[100]>() e = Slice(s, i1, big, i0)",
    "Slice_back": "a = Constant<value_ints=[-1]>() b = Constant<value_ints=[-1000]>() e = Slice(s, a, b, i0, a)",
    "Slice_last": "big = Constant<value_ints=[100]>() a = Constant<value_ints=[-1]>() e = Slice(s, a, big, i0)",
    "Split": "e, f = Split<axis=1,num_outputs=2>(s)",
    "Pad": "p = Constant<value_ints=[1,0,2,0]>() e = Pad(s, p)",
    "Pad_columns": "p = Constant<value_ints=[0,1,0,0]>() e = Pad(s, p)",
    "Transpose": "e = Transpose<perm=[1,0]>(s)",
    "Reshape": "f = Constant<value_ints=[-1,2,2]>() e = Reshape(s, f)",
    "Reshape_flat": "f = Constant<value_ints=[-1]>() e = Reshape(s, f)",
    "Expand": "n = Shape(s) e = Expand(row, n)",
    "Tile": "r = Constant<value_ints=[2,3]>() e = Tile(s, r)",
    "MatMul_rows": "e = MatMul(s, weights)",
    "MatMul_columns": "turned = Transpose<perm=[1,0]>(s) e = MatMul(row, turned)",
    "MatMul_over_them": "turned = Transpose<perm=[1,0]>(s) e = MatMul(turned, s)",
    "MatMul_both": "turned = Transpose<perm=[1,0]>(s) e = MatMul(s, turned)",
    "MatMul_late": "a = Constant<value_ints=[2]>() b = Constant<value_ints=[100]>() late = Slice(s, a, b, i0)"
    " turned = Transpose<perm=[1,0]>(late) e = MatMul(late, turned)",
    "Gemm": "e = Gemm<transA=1>(s, s, weights)",
    "Einsum": 'e = Einsum<equation="ij,ij->j">(s, s)',
    "Attention": "turned = Transpose<perm=[1,0]>(s) q = MatMul(row, turned) p = Softmax(q) e = MatMul(p, s)",
    "Conv": "i = Reshape(s, image) c = Conv<pads=[1,1,1,1]>(i, kernel) r = Relu(c) e = GlobalAveragePool(r)",
    "ConvTranspose": "i = Reshape(s, image) e = ConvTranspose(i, kernel)",
    "MaxPool": "i = Reshape(s, image) e = MaxPool<kernel_shape=[2,2]>(i)",
    "Resize": "i = Reshape(s, image) by = Constant<value_floats=[1.0,1.0,2.0,2.0]>()"
    ' e = Resize<mode="linear">(i, , by)',
    "LayerNormalization": "w = Squeeze(row, i0) e = LayerNormalization<axis=1>(s, w)",
    "CumSum": "e = CumSum(s, zero)",
    "OneHot": "v = Constant<value_floats=[0.0,1.0]>() d = Constant<value_int=5>() e = OneHot(at, d, v)",
    "Range": "n = Size(s) e = Range(zero, n, one)",
    "ConstantOfShape": "n = Shape(s) e = ConstantOfShape(n)",
    "Shape": "e = Shape(s)",
    "Size_at_least_1": "n = Size(s) m = Max(n, one) k = Cast<to=1>(m) q = ReduceSum<keepdims=0>(s) e = Div(q, k)",
    "NonZero": "e = NonZero(s)",
    "Compress": "b = ReduceMax<keepdims=0>(s, i1) c = Greater(b, z) e = Compress<axis=0>(s, c)",
    "Unique": "e = Unique<sorted=1>(s)",
    "QuantizeLinear": "by = Constant<value_float=0.1>() q = QuantizeLinear(s, by) e = DequantizeLinear(q, by)",
    "NonMaxSuppression": "b = Unsqueeze(s, i0) c = ReduceMax<keepdims=0>(s, i1) d = Constant<value_ints=[0,1]>()"
    " scores = Unsqueeze(c, d) e = NonMaxSuppression(b, scores, i2)",
}

_TEXT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[N,4] x) => (float[E] e, float[P,4] t)
<int64[1] i0={0}, int64[1] i1={1}, int64[1] i2={2}, int64 zero={0}, int64 one={1}, int64 four={4}, float z={0.0},
 float[1,4] row={1.5,-2,3,0.5}, float[4,4] weights={1,2,3,4,5,6,7,8,9,1,2,3,4,4,4,4}, int64[4] image={-1,1,2,2},
 float[8] base={1,2,3,4,5,6,7,8}, float[1,1,3,3] kernel={1,2,3,4,5,6,7,8,9}>
{ largest = ReduceMax<keepdims=0>(x, i1) good = Greater(largest, z) s = Compress<axis=0>(x, good)
  places = NonZero(good) at = Squeeze(places, i0) %s t = Concat<axis=0>(s, row) }"""


def _rows(count: int, sign: int) -> np.ndarray[Any, Any]:
    return (sign * (np.abs(np.random.default_rng(count).standard_normal((count, 4))) + 0.1)).astype(np.float32)


def _model(nodes: str) -> tuple[onnx.ModelProto, onnxruntime.InferenceSession]:
    """The model, whose output ``e`` has the type and the number of axes that onnxruntime finds, and its session."""
    model = onnx.parser.parse_model(_TEXT % nodes)
    used = {name for node in model.graph.node for name in node.input}
    retained = [each for each in model.graph.initializer if each.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(retained)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    declared = model.graph.output[0].type.tensor_type
    declared.ClearField("shape")
    node = next(each for each in model.graph.node if "e" in each.output)
    casts = {"q = Cast<to=7>": 7, "q = Cast<to=6>": 6}
    kinds = {"Not": 9, "ArgMax": 7, "Shape": 7, "Range": 7, "NonZero": 7, "NonMaxSuppression": 7}
    declared.elem_type = casts.get(nodes[:14], kinds.get(node.op_type, 1))
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    (e, _) = session.run(None, {"x": _rows(3, 1)})
    declared.shape.SetInParent()
    for axis in range(e.ndim):
        declared.shape.dim.add().dim_param = f"E{axis}"
    return model, session


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", CASES)
def test_as_onnxruntime(name: str) -> None:
    model, reference = _model(CASES[name])
    session = lb.Session(lb.compile(model))
    for x in (_rows(5, -1), _rows(5, 1), _rows(1, -1)):
        for found, expected in zip(session(x), reference.run(None, {"x": x}), strict=True):
            array = np.asarray(found)
            assert (array.shape, array.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-5)


def test_code_that_cannot_be_made_of_nothing_is_made_of_one_or_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not proved for 0 is compiled for at least 1, and such a run is refused where a result has elements."""
    lower, refused = compilation.lower_kernels, []

    def proving_no_zeros(module: Any, *args: Any, **options: Any) -> Any:
        if any(symbol.low == 0 for symbol in module.dimensions().values()):
            refused.append(module)
            raise AccessError("not proved")
        return lower(module, *args, **options)

    monkeypatch.setattr(compilation, "lower_kernels", proving_no_zeros)
    model, reference = _model("e = Relu(s)")
    executable = lb.compile(model)
    session = lb.Session(executable)
    assert [set(module.dimensions()) for module in refused] == [{"N"}, {"s"}]  # of an input, and of the data
    walks = executable.metadata[compilation.WALKS].splitlines()
    assert walks[0] == "the model"
    again = ["inputs without elements do not cut the program", "what data fill is not empty"]
    assert [walk for walk in walks if walk in again] == again
    x = _rows(4, 1)
    np.testing.assert_array_equal(session(x)[1], reference.run(None, {"x": x})[1])
    with pytest.raises(lb.ShapeError, match=r"is 0 in this run, and the program was compiled only for at least 1"):
        session(-x)


def test_a_fault_that_has_nothing_to_do_with_nothing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def unproved(module: Any, *args: Any, **options: Any) -> Any:
        raise AccessError("not proved")

    monkeypatch.setattr(compilation, "lower_kernels", unproved)
    with pytest.raises(AccessError) as raised:
        lb.compile(_model("e = Relu(s)")[0])
    cause, heading, *tried = str(raised.value).splitlines()
    assert cause.startswith("not proved")
    assert heading == "Tried after that, without success:"
    assert tried[-1] == "  - no tensor is without elements, unless data decide that: the same"
