"""Nodes that are imported like earlier ones give the program that importing each of them gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, helper, numpy_helper, parser

import landbridge as lb
from landbridge.errors import UnsupportedOperatorError
from landbridge.frontend.onnx.import_request import ImportRequest
from landbridge.frontend.onnx.importer import import_onnx
from landbridge.frontend.onnx.repeated_nodes import RepeatedNodes
from landbridge.ir.graph_ops import CallOp
from landbridge.ir.module import IRModule
from landbridge.ir.traversal import operations_of
from landbridge.ir.verifier import verify
from landbridge.operators import REGISTRY, kernel
from landbridge.ops.context import OpContext, Operand
from landbridge.passes.dedup import dedup
from landbridge.targets import Target

OPSETS = '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1, "test.repeated": 1]>'
WIDTH = 16
#: Imports a model; returns the module, and how many nodes were imported like others.
Imports = Callable[..., tuple[IRModule, int]]


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> Imports:
    begin = RepeatedNodes.begin

    def of(model: ModelProto, is_repeated: bool = True, **request: Any) -> tuple[IRModule, int]:
        found = 0

        def counted(self: RepeatedNodes, *node: Any) -> Any:
            nonlocal found
            results = begin(self, *node) if is_repeated else None
            found += results is not None
            return results

        with monkeypatch.context() as patch:
            patch.setattr(RepeatedNodes, "begin", counted)
            module = import_onnx(ImportRequest(model, (Target("llvm"),), **{"dimensions": {}, **request})).module
        verify(module)
        return module, found

    return of


def check_equal(imports: Imports, model: ModelProto, **request: Any) -> int:
    """Check that the program is that of importing each node; returns how many nodes were imported like others."""
    module, count = imports(model, **request)
    other, none = imports(model, is_repeated=False, **request)
    assert none == 0
    assert _content(module) == _content(other)
    return count


def _content(module: IRModule) -> tuple[str, dict[str, tuple[str, tuple[int, ...], bytes]]]:
    """The text and the constants of a module, whose equal functions are one: repeated nodes share theirs at once."""
    dedup(module)
    return str(module.op), {n: (a.dtype.name, a.shape, a.tobytes()) for n, a in module.constants.items()}


def parsed(text: str) -> ModelProto:
    return parser.parse_model(f"{OPSETS} {text}")


def weight(seed: int, *shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) / np.float32(4)


def of_nodes(nodes: list[NodeProto], weights: dict[str, np.ndarray[Any, Any]]) -> ModelProto:
    """A model that computes ``y`` [2, WIDTH] of ``x`` [2, WIDTH]."""
    x, y = (helper.make_tensor_value_info(name, 1, [2, WIDTH]) for name in "xy")
    given = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    opsets = [helper.make_opsetid("", 21)]
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y], given), opset_imports=opsets, ir_version=10)


def layers(count: int, is_tied: bool = False) -> ModelProto:
    """A net of equal layers: a norm, a product, a bias, and an activation; ``is_tied``: they share their weights."""
    nodes = [helper.make_node("Identity", ["x"], ["h0"], name="begin")]
    weights: dict[str, np.ndarray[Any, Any]] = {}
    for k in range(count):
        of = 0 if is_tied else k
        weights |= {
            f"scale{of}": weight(4 * of, WIDTH) + 1,
            f"bias{of}": weight(4 * of + 1, WIDTH),
            f"w{of}": weight(4 * of + 2, WIDTH, WIDTH),
            f"b{of}": weight(4 * of + 3, WIDTH),
        }
        nodes += [
            helper.make_node("LayerNormalization", [f"h{k}", f"scale{of}", f"bias{of}"], [f"n{k}"], name=f"norm{k}"),
            helper.make_node("MatMul", [f"n{k}", f"w{of}"], [f"p{k}"], name=f"product{k}"),
            helper.make_node("Add", [f"p{k}", f"b{of}"], [f"a{k}"], name=f"add{k}"),
            helper.make_node("Sigmoid", [f"a{k}"], [f"s{k}"], name=f"gate{k}"),
            helper.make_node("Mul", [f"s{k}", f"h{k}"], [f"h{k + 1}"], name=f"mul{k}"),
        ]
    nodes.append(helper.make_node("Tanh", [f"h{count}"], ["y"], name="end"))
    return of_nodes(nodes, weights)


@pytest.mark.parametrize("is_tied", [False, True])
def test_functions_do_not_grow_with_layers(is_tied: bool, imports: Imports) -> None:
    functions = []
    for count in (3, 6, 12):
        module, repeated = imports(layers(count, is_tied))
        functions.append(len(module.prims()))
        assert repeated == 5 * (count - 1)
        assert len(operations_of(module.main, CallOp)) == 5 * count + 1
    assert len(set(functions)) == 1


@pytest.mark.parametrize("is_tied", [False, True])
@pytest.mark.parametrize("count", [2, 6])
def test_layers_have_the_results_of_onnxruntime(count: int, is_tied: bool, imports: Imports) -> None:
    model = layers(count, is_tied)
    check_equal(imports, model)
    x = weight(99, 2, WIDTH)
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    found = lb.Session(lb.compile(model))({"x": x})["y"]
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-6)  # sums of 16 terms in f32, six layers


@pytest.mark.parametrize("operands", ["v, v", "v, e", "e, v", "e, e"])
@pytest.mark.parametrize("other", ["v, v", "v, e", "e, v", "e, e"])
def test_a_view_and_what_it_views_are_different_operands(operands: str, other: str, imports: Imports) -> None:
    text = f"""g (float[1, 4] x) => (float y, float z) <int64[1] four = {{4}}> {{
        e = Exp(x) v = Reshape(e, four) a = Add({operands}) b = Add({other}) y = Neg(a) z = Neg(b)
    }}"""
    model = parsed(text)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    check_equal(imports, model)


def test_weights_that_share_memory_are_not_taken_for_each_other(imports: Imports) -> None:
    """The scale and the bias of the first norm are views of one weight, those of the second are of two."""
    weights = {name: weight(seed, 1, WIDTH) for seed, name in enumerate("abc")}
    views = {"s0": "a", "b0": "a", "s1": "b", "b1": "c"}
    nodes = [helper.make_node("Squeeze", [of], [name], name=name) for name, of in views.items()]
    nodes += [
        helper.make_node("Exp", ["x"], ["e"], name="begin"),
        helper.make_node("LayerNormalization", ["e", "s0", "b0"], ["n"], name="first"),
        helper.make_node("LayerNormalization", ["n", "s1", "b1"], ["m"], name="second"),
        helper.make_node("Tanh", ["m"], ["y"], name="end"),
    ]
    check_equal(imports, of_nodes(nodes, weights))


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "MatMul"])
def test_a_weight_may_be_zeros_or_ones(op_type: str, imports: Imports) -> None:
    shape = (WIDTH, WIDTH) if op_type == "MatMul" else (WIDTH,)
    weights = {"w0": np.zeros(shape, np.float32), "w1": np.ones(shape, np.float32), "w2": weight(1, *shape)}
    names = ["e", "h0", "h1", "h2"]
    nodes = [helper.make_node(op_type, [names[k], f"w{k}"], [names[k + 1]], name=f"n{k}") for k in range(3)]
    nodes = [helper.make_node("Exp", ["x"], ["e"]), *nodes, helper.make_node("Tanh", ["h2"], ["y"])]
    assert check_equal(imports, of_nodes(nodes, weights)) > 0


CONSTANTS = """<int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] four = {4}, int64[1] end = {99},
    int64[2] flat = {2, 16}, int64[2] narrow = {4, 8}, int64[4] pads = {0, 1, 0, 1}, int64[4] more = {0, 2, 0, 2},
    float low = {-0.5}, float lower = {-1.5}, float high = {0.5}, float minus = {-0.0}, float plus = {0.0},
    float[2] twice = {1.0, 2.0}, float[2] thrice = {1.0, 3.0}, float half = {0.5}, float third = {0.3},
    uint8 point = {128}, uint8 lowest = {0}, int64 trips = {2}, int64 fewer = {1}, bool yes = {1}>"""
#: Graphs by what their nodes depend on beside their operands' types: in each, two nodes differ in that alone, and
#: further nodes are equal to one of them.
GRAPHS = {
    "shapes": "a = Reshape(e, flat) b = Reshape(e, narrow) c = Reshape(a, narrow) d = Reshape(b, flat)",
    "ranges": """a = Slice(e, zero, two, one) b = Slice(e, one, four, one) c = Slice(e, zero, two, one)
        f = Slice(e, zero, end, one, two) d = Slice(e, one, end, one, two)""",
    "limits": """a = Clip(e, low, high) b = Clip(e, lower, high) c = Clip(e, , high) d = Clip(e, low)
        f = Clip(e, low, high)""",
    "signs of zero": "a = Add(e, minus) b = Add(e, plus) c = Div(e, minus) d = Div(e, plus) f = Add(a, minus)",
    "pads": "a = Pad(e, pads) b = Pad(e, more) c = Pad(e, pads) d = Pad(e, pads, half)",
    "factors": "a = Resize(e, , twice) b = Resize(e, , thrice) c = Resize(e, , twice) d = Resize(b, , twice)",
    "equations": """a = Einsum<equation = "ij->ji">(e) b = Einsum<equation = "ij->i">(e)
        c = Einsum<equation = "ij->ji">(e) d = Einsum<equation = "ij,ij->ij">(e, e)""",
    "axes": "a = ReduceSum(e, zero) b = ReduceSum(e, one) c = ReduceSum(e, zero) d = ReduceSum(e)",
    "exponents": "a = Pow(e, half) b = Pow(e, third) c = Pow(e, half) d = Pow(a, half)",
    "quantized": """q = QuantizeLinear(e, half, point) a = DequantizeLinear(q, half, point)
        r = QuantizeLinear(a, third, lowest) b = DequantizeLinear(r, third, lowest)
        s = QuantizeLinear(b, half, point) c = DequantizeLinear(s, half, point) d = Add(a, c)""",
    "bodies": """a = Loop(trips, yes, e) <body = l (int64 i, bool go, float[2, 16] h) => (bool on, float[2, 16] k) {
            on = Identity(go) p = Exp(h) k = Exp(p) }>
        b = Loop(fewer, yes, a) <body = m (int64 i, bool go, float[2, 16] h) => (bool on, float[2, 16] k) {
            on = Identity(go) p = Neg(h) k = Neg(p) }>
        c = Exp(b) d = Exp(c)""",
    "branches": """most = ReduceMax<keepdims = 0>(e) is_large = Greater(most, half)
        a = If(is_large) <then_branch = t () => (float[2, 16] p) { o = Exp(e) p = Exp(o) },
            else_branch = f () => (float[2, 16] n) { m = Neg(e) n = Neg(m) }>
        b = Exp(a) c = Exp(b) d = Neg(c)""",
    "scans": """a = Scan<num_scan_inputs = 1, body = s (float[16] row) => (float[16] out) {
            p = Exp(row) out = Exp(p) }>(e)
        b = Exp(a) c = Exp(b) d = Neg(c)""",
    "another domain": """a = com.microsoft.BiasGelu(e, u) b = com.microsoft.BiasGelu(a, w)
        c = com.microsoft.QuickGelu<alpha = 1.0>(b) d = com.microsoft.QuickGelu<alpha = 2.0>(c)""",
    "optional outputs": """a, am = LayerNormalization(e, u) b = LayerNormalization(a, u)
        c, cm = LayerNormalization(b, w) d = LayerNormalization(c, w, u)""",
    "no broadcast and some": "a = Add(e, u) b = Add(e, e) c = Add(u, e) d = Add(e, w) f = Mul(d, d)",
}
#: Of these no node is repeated.
NEVER = {"quantized"}


@pytest.mark.parametrize("extent", ["2", "n"])
@pytest.mark.parametrize("name", GRAPHS)
def test_nodes_that_differ_in_a_constant_stay_different(name: str, extent: str, imports: Imports) -> None:
    names = [each for each in "abcdf" if f" {each} =" in f" {GRAPHS[name]}" or f" {each}, " in f" {GRAPHS[name]}"]
    text = f"""g (float[{extent}, 16] x) => ({", ".join(f"float o{n}" for n in names)}) {CONSTANTS} {{
        e = Exp(x) {GRAPHS[name]} {" ".join(f"o{n} = Abs({n})" for n in names)}
    }}"""
    if extent == "n" and name == "shapes":
        pytest.skip("the shapes are of two rows")
    model = parsed(text)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    for seed, weight_name in enumerate("uw"):
        model.graph.initializer.append(numpy_helper.from_array(weight(seed, WIDTH), weight_name))
    assert (check_equal(imports, model) > 0) == (name not in NEVER)


def test_an_operator_of_others_is_imported_each_time(imports: Imports) -> None:
    reads: list[str] = []

    def scaled(c: OpContext, x: Operand) -> Operand:
        reads.append(c.g.node)
        return c.elementwise("scaled", [x], lambda s, v: v * float(len(reads)))

    scaled.__module__ = "another_package"
    model = parsed("""g (float[4] x) => (float[4] y) {
        e = Exp(x) a = test.repeated.Scaled(e) b = test.repeated.Scaled(a) c = test.repeated.Scaled(b) y = Exp(c)
    }""")
    with REGISTRY.isolated():
        kernel("test.repeated", "Scaled")(scaled)
        imports(model)
    assert reads == ["a", "b", "c"]


def test_each_node_that_fails_is_reported(imports: Imports) -> None:
    model = parsed("""g (float[4] x, int64[1] n) => (float[4] y) {
        e = Exp(x) a = ReduceSum(e, n) b = ReduceSum(e, n)
        c = test.repeated.No(e) d = test.repeated.No(e) f = Exp(e) y = Exp(f)
    }""")
    messages = []
    for is_repeated in (True, False):
        with pytest.raises(UnsupportedOperatorError) as found:
            imports(model, is_repeated=is_repeated)
        messages.append(str(found.value))
    assert messages[0] == messages[1]
    assert all(f"'{name}'" in messages[0] for name in "cd")


def test_caches_of_equal_layers_grow_alike(imports: Imports) -> None:
    count = 4
    past = ", ".join(f"float[1, past, 16] past{k}" for k in range(count))
    present = ", ".join(f"float[1, all, 16] present{k}" for k in range(count))
    body = " ".join(
        f"n{k} = Exp(h{k}) present{k} = Concat<axis = 1>(past{k}, n{k}) t{k} = ReduceMax(present{k}, one) "
        f"h{k + 1} = Add(n{k}, t{k})"
        for k in range(count)
    )
    model = parsed(f"""g (float[1, new, 16] x, {past}) => (float[1, new, 16] y, {present}) <int64[1] one = {{1}}> {{
        h0 = Exp(x) {body} y = Exp(h{count})
    }}""")
    assert check_equal(imports, model, alias="auto") > 0
    assert check_equal(imports, model) > 0


def test_tensors_among_attributes_are_compared(imports: Imports) -> None:
    nodes = [helper.make_node("Round", ["x"], ["r"]), helper.make_node("Cast", ["r"], ["i"], to=7)]
    for k in range(3):
        keys = helper.make_tensor(f"k{k}", 7, [3], [0, 1, 2])
        found = helper.make_tensor(f"v{k}", 7, [3], [k % 2, 5, 6])
        default = helper.make_tensor(f"d{k}", 7, [1], [0])
        attributes = {"keys_tensor": keys, "values_tensor": found, "default_tensor": default}
        nodes.append(helper.make_node("LabelEncoder", ["i"], [f"l{k}"], domain="ai.onnx.ml", **attributes))
    nodes += [
        helper.make_node("Add", ["l0", "l1"], ["s"]),
        helper.make_node("Add", ["s", "l2"], ["t"]),
        helper.make_node("Cast", ["t"], ["y"], to=1),
    ]
    model = of_nodes(nodes, {})
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 4))
    assert check_equal(imports, model) > 0
