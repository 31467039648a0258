"""Rules of operators: what they say, that every handler has some, and that nodes they do not allow are refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.errors import CompileError, NodeError, ShapeError, UndecidedSizeError
from landbridge.ir.graph_builder import Broadcasting, GraphBuilder
from landbridge.operators import REGISTRY, Kernel, kernel
from landbridge.operators.implementations import is_built_in
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.legal import Condition, at_least, axis_of, not_empty, one_of
from landbridge.ops.rule_check import check
from landbridge.ops.rules import index_of, rules, rules_of
from landbridge.sizes.size import dimension


class _Graph:
    node = "n"
    never_runs = False
    broadcasting = Broadcasting()


def _checked(declared: object, *shapes: tuple[int, ...] | np.ndarray | None, **attributes: object) -> None:
    """Check operands of these shapes by rules; arrays are constants as they are."""

    def handler(c: OpContext, *inputs: Operand) -> None: ...

    declared(handler)  # type: ignore[operator]
    graph: GraphBuilder = _Graph()  # type: ignore[assignment]
    operands = [np.zeros(s, np.float32) if isinstance(s, tuple) else s for s in shapes]
    check(OpContext(graph, "Op", 1, attributes), handler, operands)


def test_every_handler_has_rules() -> None:
    """Of every domain and every version; what is registered by others than this package need not."""
    ours = [each for each in REGISTRY.of_kind(Kernel) if is_built_in(each)]
    assert len(ours) > 150
    assert not [each for each in ours if rules_of(each.function) is None]


def test_rules_speak_of_what_the_operator_has() -> None:
    """Operands are those of ONNX, by name and in order, and attributes are attributes or operands of some version."""
    versions: dict[str, list[onnx.defs.OpSchema]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            versions.setdefault(schema.name, []).append(schema)
    for each in REGISTRY.of_kind(Kernel):
        declared, op_type = rules_of(each.function), each.op_type
        if each.domain or declared is None:
            continue
        names = tuple(o.name for o in declared.operands)
        if len(names) > 1:
            assert any(tuple(f.name for f in v.inputs)[: len(names)] == names for v in versions[op_type]), op_type
        attributes = {name for v in versions[op_type] for name in v.attributes}
        unknown = declared.attributes.keys() - attributes - set(names) - {"reduction"}
        assert not unknown, (op_type, unknown)


def test_what_is_empty_is_reported_in_words() -> None:
    declared = rules("X: *S", where=(not_empty("S", "X"),))
    _checked(declared, (1, 2))
    with pytest.raises(ShapeError, match=r"it must hold that X has elements, no extent of 0; S is \(1, 0\)"):
        _checked(declared, (1, 0))


def test_names_bind_extents() -> None:
    declared = rules("X: N C *D", "W: M C *k", "B?: M", where=("len(D) == len(k)",))
    _checked(declared, (1, 2, 5, 5), (4, 2, 3, 3), (4,))
    _checked(declared, (1, 2, 5, 5), (4, 2, 3, 3))
    with pytest.raises(ShapeError, match=r"Op node 'n': W has shape \(4, 3, 3, 3\).*C is 2 by X"):
        _checked(declared, (1, 2, 5, 5), (4, 3, 3, 3))
    with pytest.raises(ShapeError, match=r"B has shape \(3,\); legal: M; M is 4 by W"):
        _checked(declared, (1, 2, 5, 5), (4, 2, 3, 3), (3,))
    with pytest.raises(ShapeError, match=r"it must hold that len\(D\) == len\(k\); D is \(5, 5\), k is \(3,\)"):
        _checked(declared, (1, 2, 5, 5), (4, 2, 3))
    with pytest.raises(NodeError, match="lacks operand W"):
        _checked(declared, (1, 2, 5, 5))
    with pytest.raises(NodeError, match="has 4 operands"):
        _checked(declared, (1, 2, 5, 5), (4, 2, 3, 3), (4,), (4,))


@pytest.mark.parametrize(
    ("dims", "legal", "illegal"),
    [
        ("()", [()], [(1,), (0,)]),
        ("() | 1", [(), (1,)], [(2,), (1, 1)]),
        ("_ ...", [(3,), (0, 2)], [()]),
        ("... R C", [(1, 2), (3, 1, 2)], [(2,)]),
        ("2 _", [(2, 7)], [(3, 7), (2,)]),
        ("N N", [(2, 2)], [(2, 3)]),
    ],
)
def test_forms(dims: str, legal: list[tuple[int, ...]], illegal: list[tuple[int, ...]]) -> None:
    for shape in legal:
        _checked(rules(f"x: {dims}"), shape)
    for shape in illegal:
        with pytest.raises(ShapeError):
            _checked(rules(f"x: {dims}"), shape)


def test_broadcasts() -> None:
    both = rules("a: &S", "b: &S")
    _checked(both, (3, 1), (4,))
    with pytest.raises(ShapeError, match=r"a \(3, 2\), b \(4,\) does not broadcast"):
        _checked(both, (3, 2), (4,))
    one = rules("a: *S", "b: <S")
    _checked(one, (3, 2), (2,))
    with pytest.raises(ShapeError):
        _checked(one, (2,), (3, 2))
    every = rules("*xs: &S")
    _checked(every, (3, 1), (4,), (1, 1))
    with pytest.raises(ShapeError, match=r"xs\[2\] \(5,\)"):
        _checked(every, (3, 1), (4,), (5,))


def test_attributes_are_legal() -> None:
    declared = rules(
        "x: *S", attributes={"axis": axis_of("len(S)"), "n": at_least(1, count="len(S)"), "m": one_of("a")}
    )
    _checked(declared, (2, 3), axis=-2, n=[1, 2], m="a")
    for wrong in ({"axis": 2}, {"axis": -3}, {"axis": "0"}, {"n": [1]}, {"n": [1, 0]}, {"n": 1}, {"m": "b"}):
        with pytest.raises(NodeError, match=f"{next(iter(wrong))} is .*; legal: "):
            _checked(declared, (2, 3), **wrong)


def test_constant_operands_are_attributes_too() -> None:
    declared = rules("x: *S", "axes: _", attributes={"axes": axis_of("len(S)")})
    _checked(declared, (2, 3), np.array([0, -1]))
    with pytest.raises(NodeError, match=r"axes is \[2\]"):
        _checked(declared, (2, 3), np.array([2]))


def test_constant_indices() -> None:
    declared = rules("x: *S", "i: ...", indices={"i": index_of("S[0]")})
    _checked(declared, (2, 3), np.array([0, -2, 1]))
    with pytest.raises(ShapeError, match=r"i holds index 2; legal: -2..1"):
        _checked(declared, (2, 3), np.array([[2]]))
    _checked(declared, (0, 3), np.zeros(0, np.int64))
    with pytest.raises(ShapeError, match="an axis without elements"):
        _checked(declared, (0, 3), np.zeros(1, np.int64))


@pytest.mark.parametrize("text", ["x", "x N", "1x: N", "x: *A *B", "x: ... *A"])
def test_rules_that_do_not_parse(text: str) -> None:
    with pytest.raises(CompileError):
        rules(text)


#: (nodes, what the error names) of models in onnx's text form, each of which read or wrote beyond its operands once.
CONTRADICTIONS = [
    ("float[2,2] x, int64[3,9] i", "GatherElements <axis = 0> (x, i)", "indices"),
    ("float[2,2] x, int64[2] i", "GatherElements (x, i)", "indices"),
    ("float[2,3,4] x, int64[5,1] i", "GatherND <batch_dims = 1> (x, i)", "batch_dims"),
    ("float[2,3] x, int64[5,3] i", "GatherND (x, i)", "depth"),
    ("int64[3] i, float[1] v", "OneHot (i, four, v)", "values"),
    ("float[4,2] x, int64[3] n", "ReverseSequence (x, n)", "input"),
    ("float[4] x, int64[4] n", "ReverseSequence (x, n)", "input"),
    ("float[1,1,4,4] x, float[1,2,2,1] g", "GridSample (x, g)", "r == len(D)"),
    ("float[1,4,5] x, float[2] s, float[4] b", "InstanceNormalization (x, s, b)", "scale"),
    ("float[4,4] x, int64[2,2] i, float[1,1] u", "ScatterElements (x, i, u)", "updates"),
    ("float[4,4] x, int64[9,5] i, float[9,5] u", "ScatterElements <axis = 0> (x, i, u)", "data"),
    ("float[4,4] x, int64[2,1] i, float[1,4] u", "ScatterND (x, i, u)", "updates"),
    ("float[4,4] x, int64[2,3] i, float[2] u", "ScatterND (x, i, u)", "depth"),
    ("float[1,1,5,5] x, float[1,1,3,3] w", "Conv <dilations = [-1, 1]> (x, w)", "dilations"),
    ("float[1,1,5,5] x, float[1,1,3,3] w", "Conv <strides = [0, 1]> (x, w)", "strides"),
    ("float[1,1,5,5] x, float[1,1,3,3] w", "Conv <pads = [-9, 0, 0, 0]> (x, w)", "pads"),
    ("float[1,2,5,5] x, float[4,2,3,3] w", "Conv <group = 2> (x, w)", "C == K"),
    ("float[1,2,5,5] x, float[4,2,3,3] w", "Conv <group = 0> (x, w)", "group"),
    ("float[1,2,5,5] x, float[4,2,3,3] w, float[3] b", "Conv (x, w, b)", "B"),
    ("float[1,1,5,5] x", "MaxPool <kernel_shape = [2, 2], dilations = [-2, 1]> (x)", "dilations"),
    ("float[1,1,5,5] x", "MaxPool <kernel_shape = [2, 2], pads = [2, 0, 0, 0]> (x)", "pads"),
    ("float[1,1,5,5] x", "AveragePool <kernel_shape = [2]> (x)", "kernel_shape"),
    ("float[1,1,5,5] x", "AveragePool <kernel_shape = [2, 2], pads = [3, 0, 0, 0]> (x)", "pads"),
    ("float[1,1,4,4] x, float[1,1,3,3] w", "ConvTranspose <output_shape = [4]> (x, w)", "output_shape"),
    ("float[1,1,4,4] x, float[1,1,3,3] w", "ConvTranspose <output_shape = [-4, 4]> (x, w)", "output_shape"),
    ("float[1,2,4,4] x, float[2,3,3,3] w, float[2] b", "ConvTranspose (x, w, b)", "B"),
    ("float[0,3] x", "Pad <mode = \"edge\"> (x, pads)", "edge"),
    ("float[0,3] x", "Pad <mode = \"wrap\"> (x, pads)", "wrap"),
    ("float[0,3] x, int64[2] i", "Gather (x, i)", "indices"),
    ("float[6] x", "Split (x, sizes)", "split"),
    ("float[3,2,4] x, float[1,12,4] w, float[1,12,3] r, float[1,1,3] h", "LSTM (x, w, r, \"\", \"\", h)", "initial_h"),
    ("float[3,2,4] x, float[1,12,4] w, float[1,12,3] r, float[1,3] p",
     "LSTM (x, w, r, \"\", \"\", \"\", \"\", p)", "P"),
    ("float[3,2,4] x, float[1,12,4] w, float[1,9,3] r", "LSTM (x, w, r)", "R"),
    ("float[3,2,4] x, float[1,9,4] w, float[1,9,3] r, float[1,9] b", "GRU (x, w, r, b)", "B"),
    ("float[3,2,4] x, float[2,3,4] w, float[2,3,3] r", "RNN (x, w, r)", "W is for the one direction"),
    ("float[2,3,4] x, float[2] s, float[3] b, float[3] m, float[3] v", "BatchNormalization (x, s, b, m, v)", "B"),
    ("float[2,4,4] x, float[3] s", "LayerNormalization (x, s)", "Scale"),
    ("float[2,3] x, float[4,2] w", "Gemm (x, w)", "A"),
    ("float[2,3] x, float[3,2] w, float[3] b", "Gemm (x, w, b)", "C"),
    ("float[2,3] x, float[2,3,1] s", "PRelu (x, s)", "slope"),
    ("float[4] x, float[2] b", "Clip (x, b)", "min"),
    ("float[2,3] x", "Unsqueeze (x, twice)", "axes"),
    ("float[2,3] x", "Tile (x, sizes)", "repeats"),
    ("float[2,3] x", "Transpose <perm = [0, 0]> (x)", "perm"),
    ("float[1,3,2,2] x", "DepthToSpace <blocksize = 2> (x)", "blocksize"),
    ("float[1,1,3,2] x", "SpaceToDepth <blocksize = 2> (x)", "blocksize"),
    ("float[1,9] s, float[12] w", "STFT (s, four, w)", "P"),
    ("float[2,3] x", "Einsum <equation = \"ij->k\"> (x)", "'k'"),
    ("float[2,3] x", "Concat <axis = 2> (x, x)", "axis"),
    ("uint8[2,3] x, float[2] s, uint8[3] z", "DequantizeLinear (x, s, z)", "zero_point"),
    ("uint8[2,3] x, uint8[3,2] w, uint8[3] z", "MatMulInteger (x, w, z)", "a_zero_point"),
    ("float[5] x", "TopK (x, nine)", "K"),
]  # fmt: skip


@pytest.mark.parametrize(("inputs", "node", "names"), CONTRADICTIONS)
def test_contradictions_are_refused(inputs: str, node: str, names: str) -> None:
    weights = "int64 four = {4}, int64[4] pads = {1, 0, 0, 0}, int64[3] sizes = {-2, 5, 3}, int64[2] twice = {0, 0}"
    weights += ", int64[1] nine = {9}"
    outputs = "o1, o2, y" if node.startswith("Split") else "y, i2" if node.startswith("TopK") else "y"
    text = (
        f'<ir_version: 10, opset_import: ["" : 21]> g ({inputs}) => (float[n] y) <{weights}> {{ {outputs} = {node} }}'
    )
    with pytest.raises((ShapeError, NodeError)) as caught:
        lb.compile(onnx.parser.parse_model(text))
    assert names in str(caught.value)
    assert node.split()[0] in str(caught.value)


def test_rules_and_handlers_of_others() -> None:
    """A handler without rules, which fails in its own way, and one with rules, which is not called."""

    @kernel("test.rules", "Careless")
    def careless(c: OpContext, x: Operand) -> Operand:
        return c.reshape(x, [{}["nothing"]])

    @rules("x: N N")
    @kernel("test.rules", "Careful")
    def careful(c: OpContext, x: Operand) -> Operand:
        raise AssertionError("called")

    text = (
        '<ir_version: 8, opset_import: ["" : 17, "test.rules" : 1]> g (float[2,3] x) => (float[n] y) {{ y = {} (x) }}'
    )
    with pytest.raises(NodeError, match=r"Careless node 'y' cannot take operands of shapes \(2, 3\): KeyError"):
        lb.compile(onnx.parser.parse_model(text.format("test.rules.Careless")))
    with pytest.raises(ShapeError, match=r"Careful node 'y': x has shape \(2, 3\); legal: N N"):
        lb.compile(onnx.parser.parse_model(text.format("test.rules.Careful")))


def test_open_extents_in_rules() -> None:
    """An equality without which a rule is broken says so, and 'in' leaves a question for each option but the last."""
    n, m = dimension("n"), dimension("m")
    for expression, needed in (("n == 3", True), ("n == 3 and m == 2", True), ("n == 3 or m == 2", False)):
        with pytest.raises(UndecidedSizeError) as requested:
            Condition(expression).fails({"n": n, "m": m})
        assert requested.value.question.equal
        assert requested.value.question.needed == needed
    with pytest.raises(UndecidedSizeError) as first:
        Condition("n in (1, 2)").fails({"n": n})
    assert not first.value.question.needed
    with pytest.raises(UndecidedSizeError) as last:
        Condition("n in (1, 2)").fails({"n": dimension("n", 2, 5)})
    assert last.value.question.needed
    assert Condition("n in (1, 2)").fails({"n": dimension("n", 3, 5)})
