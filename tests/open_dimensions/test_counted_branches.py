"""``If`` whose condition is whether data decide that there is something, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb

pytestmark = pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")

#: Ways to ask whether there is something, of ``n``, a count, and whether they say yes.
CONDITIONS = {
    "Greater": ("ask = Greater(n, zero)", True),
    "Less": ("ask = Less(n, one)", False),
    "Equal": ("ask = Equal(n, zero)", False),
    "GreaterOrEqual": ("ask = GreaterOrEqual(n, one)", True),
    "Not": ("none = Equal(n, zero) ask = Not(none)", True),
    "one element": ("m = Unsqueeze(n, i0) some = Greater(m, i0) ask = Squeeze(some)", True),
    "And": ("ready = Greater(x0, low) some = Greater(n, zero) ask = And(some, ready)", True),
}
#: What is done where there is something, and where there is nothing.
BRANCHES = {
    "a default": ("best = ReduceMax<keepdims = 0>(s, i0) y = Identity(best)", "y = Identity(row)"),
    "a number": ("m = Cast<to = 1>(n) y = Mul(row, m)", "y = Neg(row)"),
    "nothing": ("y = Mul(s, row)", "none = Constant<value_ints = [0, 4]>() y = ConstantOfShape(none)"),
    "nothing, sorted": (
        "first = ReduceMax<keepdims = 0>(s, i1) v, at = TopK(first, ns) y = Gather(s, at)",
        "none = Constant<value_ints = [0, 4]>() y = ConstantOfShape(none)",
    ),
}
TEXT = """<ir_version: 8, opset_import: ["" : 18]> g (float[N,4] x) => (%s y)
<int64[1] i0 = {0}, int64[1] i1 = {1}, int64 zero = {0}, int64 one = {1}, float low = {-99.0},
 float[4] row = {1, -2, 3, 4}, int64[1] four = {4}, float z = {0.0}> {
    largest = ReduceMax<keepdims = 0>(x, i1) good = Greater(largest, z) s = Compress<axis = 0>(x, good)
    x0 = ReduceMax<keepdims = 0>(x) size = Size(s) ns = Div(size, four) n = Squeeze(ns) %s
    y = If(ask) <then_branch = t () => (%s y) { %s }, else_branch = e () => (%s y) { %s }> }"""


def expect_as_onnxruntime(condition: str, branches: str) -> None:
    ask, yes = CONDITIONS[condition]
    some, none = BRANCHES[branches]
    result = "float[M, 4]" if "nothing" in branches else "float[4]"
    nodes = (some, none) if yes else (none, some)
    model = onnx.parser.parse_model(TEXT % (result, ask, result, nodes[0], result, nodes[1]))
    reference = onnxruntime.InferenceSession(model.SerializeToString())
    session = lb.Session(lb.compile(model), num_threads=1)
    x = np.random.default_rng(2).standard_normal((5, 4)).astype(np.float32)
    for rows in (x, -abs(x), abs(x), -abs(x[:1]), x[:2]):
        (expected,) = reference.run(None, {"x": rows})
        np.testing.assert_allclose(np.asarray(session(rows)[0]), expected, rtol=1e-6, strict=True)


@pytest.mark.sample(3)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_each_way_to_ask(condition: str) -> None:
    expect_as_onnxruntime(condition, "a default")


@pytest.mark.sample(2)
@pytest.mark.parametrize("branches", BRANCHES)
def test_what_is_done_of_nothing(branches: str) -> None:
    for condition in ("Greater", "Equal"):
        expect_as_onnxruntime(condition, branches)


def test_where_one_branch_cannot_be_of_nothing_the_other_is_never_taken() -> None:
    """It gives other shapes than the branch for something, so that which is taken would decide what there is."""
    default = "i = Constant<value_ints = [1, 4]>() y = Reshape(row, i)"
    text = TEXT % (
        "float[M, 4]",
        CONDITIONS["Greater"][0],
        "float[M, 4]",
        BRANCHES["nothing"][0],
        "float[M, 4]",
        default,
    )
    session = lb.Session(lb.compile(onnx.parser.parse_model(text)), num_threads=1)
    x = np.ones((3, 4), np.float32)
    assert session(x)[0].shape == (3, 4)
    with pytest.raises(
        lb.ShapeError, match="is 0 in this run; the model asks what it is, and the program was compiled"
    ):
        session(-x)
