"""Placement: what is asked of each tensor holds after every pass, to the program's own instructions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper
from tests.frontend.models import model, value
from tests.passes.place.scopes import SHAPE, network, target
from xdsl.dialects.builtin import TensorType

import landbridge as lb
from landbridge.compiler.compilation import PIPELINE
from landbridge.errors import PlacementError, VerifyError
from landbridge.executable.instructions import AllocStorage, AllocTensor, LoadConstant, ToVDevice
from landbridge.executable.parts import VDevice
from landbridge.frontend.onnx.import_request import ImportRequest
from landbridge.frontend.onnx.importer import import_onnx
from landbridge.ir.graph_ops import CallOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import vdevice_of
from landbridge.passes.place import PlacedNode, Places, request_places
from landbridge.passes.registry import run_pipeline

UP_TO_PACK = PIPELINE[: PIPELINE.index("bufferize")]


def placed(places: Places, passes=("place",)) -> IRModule:
    module = import_onnx(ImportRequest(network(), (target(),), (VDevice("npu"),))).module
    request_places(module, places)
    return run_pipeline(module, passes)


def scopes_of_nodes(module: IRModule) -> dict[str, str]:
    """The scope of the result of each node, inner calls of a node apart."""
    return {
        op.node.data: vdevice_of(op.res[0].type).scope.data
        for op in module.main.walk()
        if isinstance(op, CallOp) and op.node is not None
    }


def scopes_in(exe: lb.Executable) -> dict[str, str]:
    """The scope of each planned tensor by name."""
    storages = {i.dst: exe.vdevices[i.vdevice].scope for i in exe.main.instructions if isinstance(i, AllocStorage)}
    return {i.name: storages[i.storage] for i in exe.main.instructions if isinstance(i, AllocTensor)}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "places",
    [
        {"relu": "npu@global.fast"},
        {"re*": VDevice("npu", 0, "global.fast"), "*": "npu"},
        {"relu": VDevice("llvm", 0, "global.fast")},
        lambda node: "npu@global.fast" if node.operator == "relu" else None,
    ],
)
def test_a_place_is_requested_by_pattern_by_vdevice_or_by_function(places):
    found = scopes_of_nodes(placed(places))
    assert found["relu"] == "global.fast"
    assert {scope for node, scope in found.items() if node != "relu"} == {"global"}
    exe = lb.compile(network(), {"npu": target()}, place=places)
    assert scopes_in(exe)["conv+relu"] == "global.fast"


def test_a_placement_function_is_requested_about_each_node():
    seen: list[PlacedNode] = []
    placed(lambda node: seen.append(node))
    (relu,) = [node for node in seen if node.name == "relu"]
    assert relu.operator == "relu"
    assert [(s.shape, s.dtype) for s in (*relu.inputs, *relu.outputs)] == [(SHAPE, "float32")] * 2


def test_constants_are_loaded_where_they_are_wanted():
    exe = lb.compile(network(), {"npu": target()}, place={"w1": "npu@global.fast"})
    loaded = [exe.vdevices[i.vdevice].scope for i in exe.main.instructions if isinstance(i, LoadConstant)]
    assert sorted(loaded) == ["global", "global.fast"]


def test_inputs_and_outputs_lie_in_a_flat_scope_that_was_named_for_them():
    exe = lb.compile(network(), {"npu": target()}, place={"x": "npu@global.fast", "y": "npu@global.fast"})
    assert not [i for i in exe.main.instructions if isinstance(i, ToVDevice)]
    assert {exe.vdevices[spec.vdevice].scope for spec in (*exe.main.inputs, *exe.main.outputs)} == {"global.fast"}
    module = placed({"x": "npu@global.fast", "y": "npu@global.fast"})
    assert [vdevice_of(ty).scope.data for ty in module.main.function_type.inputs] == ["global.fast"]


def test_inputs_and_outputs_lie_in_rows():
    exe = lb.compile(network(), {"npu": target()}, place=dict.fromkeys("xy", "npu@global.rows[2]"))
    assert not [i for i in exe.main.instructions if isinstance(i, ToVDevice)]
    for spec in (*exe.main.inputs, *exe.main.outputs):
        assert (exe.vdevices[spec.vdevice].scope, spec.axis_separators) == ("global.rows", (2,))


def test_inputs_whose_rows_the_compiler_chooses_are_carried_there():
    exe = lb.compile(network(), {"npu": target()}, place={"x": "npu@global.rows[blocked]"})
    assert [i.name for i in exe.main.instructions if isinstance(i, ToVDevice)] == ["input x"]
    assert exe.main.inputs[0].vdevice == 0


def test_inputs_and_outputs_in_rows_take_of_the_capacity():
    small = target(**{"global.rows": {"capacity": 2 * 4096 + 4000}})
    with pytest.raises(PlacementError, match=r"inputs and outputs placed there take \d+ .'x' \d+, 'y' \d+"):
        lb.compile(network(), {"npu": small}, place=dict.fromkeys(("x", "y", "relu"), "npu@global.rows[2]"))


def test_inputs_and_outputs_take_of_the_capacity():
    small = target(**{"global.fast": {"capacity": 2 * 4096 + 4000}})
    with pytest.raises(PlacementError, match=r"inputs and outputs placed there take 8192 .'x' 4096, 'y' 4096"):
        lb.compile(network(), {"npu": small}, place=dict.fromkeys(("x", "y", "relu"), "npu@global.fast"))


def matrix_products() -> ModelProto:
    """``x @ w @ u.T + x @ v + x @ v.T``: weights that are read as they are, transposed, and both."""
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal((16, 16)).astype(np.float32) for name in ("w", "u", "v")}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="matmul"),
        helper.make_node("Gemm", ["a", "u"], ["b"], name="gemm", transB=1),
        helper.make_node("Gemm", ["x", "v", "b"], ["c"], name="with_v"),
        helper.make_node("Gemm", ["x", "v", "c"], ["y"], name="with_v_turned", transB=1, alpha=2.0),
    ]
    return model(nodes, [value("x", (4, 16))], [value("y", (4, 16))], weights)


@pytest.mark.parametrize(("weight", "times"), [("w", 1), ("u", 1), ("v", 2)])
def test_weights_of_matrix_products_are_placed_in_every_layout(weight, times):
    exe = lb.compile(matrix_products(), {"npu": target()}, place={weight: "npu@global.fast"})
    loaded = [exe.vdevices[i.vdevice].scope for i in exe.main.instructions if isinstance(i, LoadConstant)]
    assert loaded.count("global.fast") == times


def test_an_output_names_the_node_that_makes_it():
    by_output = lb.compile(network(), {"npu": target()}, place={"y": "npu@global.rows[2]"})
    by_node = lb.compile(network(), {"npu": target()}, place={"sigmoid": "npu@global.rows[2]"})
    for exe in (by_output, by_node):
        assert "global.rows" in {vdevice.scope for vdevice in exe.vdevices}
    assert by_output.main.outputs[0].axis_separators == (2,)
    assert by_node.main.outputs[0].axis_separators == ()  # it is copied to ordinary memory


def test_an_output_that_no_node_makes_has_no_place():
    nodes = [helper.make_node("Concat", ["x", "x"], ["y"], name="twice", axis=0)]
    with pytest.raises(PlacementError, match="output 'y' is not a result of a node of its own"):
        lb.compile(
            model(nodes, [value("x", SHAPE)], [value("y", (2, *SHAPE[1:]))]), {"npu": target()}, place={"y": "npu"}
        )


def test_outputs_arrive_in_ordinary_memory():
    exe = lb.compile(network(), {"npu": target()}, place={"sigmoid": "npu@global.fast"})
    assert [i.dst for i in exe.main.instructions if isinstance(i, ToVDevice)] == [1]


def test_fusion_keeps_a_tensor_that_was_placed_apart():
    names = scopes_in(lb.compile(network(), {"npu": target()}, place={"conv": "npu@global.fast"}))
    assert names["conv"] == "global.fast"
    together = scopes_in(
        lb.compile(network(), {"npu": target()}, place={"conv": "npu@global.fast", "relu": "npu@global.fast"})
    )
    assert together["conv+relu"] == "global.fast"


def test_a_tensor_of_four_axes_lies_in_rows_straight_from_the_graph():
    exe = lb.compile(network(), {"npu": target()}, place={"relu": "npu@global.rows[2]"})
    (storage,) = [i for i in exe.main.instructions if isinstance(i, AllocStorage) and i.shape]
    assert (storage.shape, storage.dtype, exe.vdevices[storage.vdevice].scope) == ((16, 256), "uint8", "global.rows")
    (tensor,) = [i for i in exe.main.instructions if isinstance(i, AllocTensor) and i.storage == storage.dst]
    assert (tensor.shape, tensor.axis_separators, tensor.offset) == (SHAPE, (2,), 0)


def test_rows_and_objects_are_used_again():
    places = dict.fromkeys(("conv", "conv2"), "npu@global.rows[2]") | dict.fromkeys(("relu", "add"), "npu@global.fast")
    rows = lb.compile(network(), {"npu": target()}, place=places)
    (storage,) = [i for i in rows.main.instructions if isinstance(i, AllocStorage) and i.shape]
    tensors = [i for i in rows.main.instructions if isinstance(i, AllocTensor) and i.storage == storage.dst]
    assert ([i.name for i in tensors], storage.shape) == (["conv", "conv2"], (16, 256))
    objects = lb.compile(
        network(), {"npu": target()}, place={"conv*": "npu@global.texture[2, 3]", "relu": "npu@global.texture[2, 3]"}
    )
    storages = [i for i in objects.main.instructions if isinstance(i, AllocStorage) and i.shape]
    assert {(i.shape, i.dtype) for i in storages} == {((16, 8, 8), "float32")}


@pytest.mark.parametrize(
    ("places", "facts", "message"),
    [
        ({"relu": "npu@global.fats"}, {}, r"no memory scope 'global.fats' \(did you mean 'global.fast'"),
        ({"relu": "npv@global.fast"}, {}, r"no such vdevice \(did you mean 'npu'\?\); legal: npu"),
        ({"relv": "npu"}, {}, "matches no node, .*legal: nodes add, .*, inputs x, outputs y, constants w1, w2"),
        ({"relu": "npu@global.rows"}, {}, "0 axis separators for scope .*, which has 2 dimensions; legal: 1"),
        ({"relu": "npu@global.rows[block]"}, {}, "is not a place; .* or 'name@scope.blocked.'"),
        ({"relu": "npu@global.fast[2]"}, {}, "1 axis separators for scope 'global.fast', which has 1 dimension"),
        ({"relu": "npu@global.rows[7]"}, {}, "tensor 'relu' in scope 'global.rows': axis_separators .7,. .* rank 4"),
        (
            {"relu": "npu@global.texture[2,3]"},
            {"global.texture": {"host_access": "none"}},
            "node 'relu' writes tensor 'relu' in scope 'global.texture', which kernels of target 'llvm' cannot use in "
            "place: its host_access is 'none' .*; legal: 'global', 'global.fast', 'global.rows'$",
        ),
        (
            {"w1": "npu@global.rows[1]"},
            {"global.rows": {"host_access": "read"}},
            "node 'conv' reads weight 'w1' in scope 'global.rows', .*; legal: 'global', 'global.fast', ",
        ),
        (
            {"x": "npu@global.fast"},
            {"global.fast": {"coherent": False, "coherence_granule": 64}},
            "node 'conv' reads input 'x' in scope 'global.fast', .* coherent False; legal: 'global', ",
        ),
        ({"relu": "npu at home@"}, {}, "is not a place; legal: 'name', 'name@scope'"),
        (
            {"relu": "npu@global.fast"},
            {"global.fast": {"capacity": 4000}},
            "scope 'global.fast' of vdevice 'npu' is too small: .*4000 .* 4096 bytes .*'conv.relu'",
        ),
        (
            {"relu": "npu@global.rows[2]"},
            {"global.rows": {"capacity": 4000}},
            "scope 'global.rows' of vdevice 'npu' is too small: 16 rows of 256 bytes .*4096 bytes, and 4000 ",
        ),
        (
            {"relu": "npu@global.texture[2,3]"},
            {"global.texture": {"capacity": 4000}},
            "scope 'global.texture' of vdevice 'npu' is too small: 1 objects of 4096 bytes",
        ),
        (
            {"relu": "npu@global.fast"},
            {"global.fast": {"max_binding_bytes": 1024}},
            "tensor 'conv.relu' has 4096 bytes, and a kernel's argument there at most 1024",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_an_error_at_compile_time(places, facts, message):
    with pytest.raises(PlacementError, match=message):
        lb.compile(network(), {"npu": target(**facts)}, place=places)


def test_a_node_in_a_branch_has_no_place():
    then = helper.make_graph([helper.make_node("Relu", ["x"], ["t"], name="inside")], "then", [], [value("t", SHAPE)])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["e"], name="other")], "else", [], [value("e", SHAPE)])
    nodes = [helper.make_node("If", ["c"], ["y"], name="choice", then_branch=then, else_branch=other)]
    net = model(nodes, [value("c", (), TensorProto.BOOL), value("x", SHAPE)], [value("y", SHAPE)])
    with pytest.raises(PlacementError, match=r"node 'inside' is in a branch of an If and .*; legal: 'global'"):
        lb.compile(net, {"npu": target()}, place={"inside": "npu@global.fast"})


def test_constants_take_of_the_capacity():
    nbytes = 4 * 16 * 16 * 9
    small = target(**{"global.fast": {"capacity": nbytes + 4000}})
    with pytest.raises(PlacementError, match=rf"no plan fits 4000 bytes.*placed there take {nbytes} .'w1"):
        lb.compile(network(), {"npu": small}, place={"w1": "npu@global.fast", "relu": "npu@global.fast"})
    enough = target(**{"global.fast": {"capacity": nbytes + 4096}})
    lb.compile(network(), {"npu": enough}, place={"w1": "npu@global.fast", "relu": "npu@global.fast"})


@pytest.mark.parametrize(("scope", "taken"), [("global.fast", 2 * 9216), ("global.rows[1]", 2 * 16 * 576)])
def test_constants_alone_take_of_the_capacity(scope, taken):
    places = dict.fromkeys(("w1", "w2"), f"npu@{scope}")
    name = scope.partition("[")[0]
    lb.compile(network(), {"npu": target(**{name: {"capacity": taken}})}, place=places)
    message = rf"{name}.*of its {taken - 1} bytes the weights, inputs and outputs placed there take {taken}"
    with pytest.raises(PlacementError, match=message):
        lb.compile(network(), {"npu": target(**{name: {"capacity": taken - 1}})}, place=places)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ('"global.rows", [1, 2]>', "2 axis separators .*expected 1"),
        ('"global.rows", [9]>', "axis_separators .9,. of a tensor of rank 4"),
        ('"global.fast", [2]>', "1 axis separators .*expected 0"),
        ('"global.slow", [2]>', "no memory scope 'global.slow'"),
    ],
)
def test_text_with_a_wrong_placement_is_refused(wrong, message):
    module = placed({"relu": "npu@global.rows[2]"})
    text = module.print().replace('"global.rows", [2]>', wrong)
    again = IRModule.parse(text, module.targets, module.vdevices, module.constants)
    with pytest.raises(VerifyError, match=message):
        run_pipeline(again, ("dedup",))


PLACES = st.sampled_from(
    ["npu", "npu@global.fast", "npu@global.rows[2]", "npu@global.rows[3]", "npu@global.texture[2,3]"]
)


@pytest.mark.full
@settings(max_examples=10)
@given(st.dictionaries(st.sampled_from(["conv", "relu", "conv2", "add", "sigmoid", "x"]), PLACES))
def test_what_was_requested_holds_after_every_pass_and_prints_and_parses(places):
    module = placed(places)
    for name, scope in scopes_of_nodes(module).items():
        if name in places:
            assert scope == VDevice.parse(places[name]).scope
    for done in UP_TO_PACK[1:]:
        module = run_pipeline(module, (done,))
        again = IRModule.parse(module.print(), module.targets, module.vdevices, module.constants)
        assert again.print() == module.print()
        found = {node: scope for names, scope in scopes_of_nodes(module).items() for node in names.split("+")}
        for node, wanted in places.items():
            scope = VDevice.parse(wanted).scope
            if node != "x" and scope != "global":
                assert found[node] == scope, (done, node)
    exe = lb.compile(network(), {"npu": target()}, place=places)
    requested = {VDevice.parse(wanted).scope for wanted in places.values()}
    assert {v.scope for v in exe.vdevices} == {"global", *requested}
    for tensor in exe.main.instructions:
        assert not isinstance(tensor, AllocTensor) or all(
            types_with(tensor, storage, exe) for storage in exe.main.instructions if isinstance(storage, AllocStorage)
        )


def types_with(tensor: AllocTensor, storage: AllocStorage, exe: lb.Executable) -> bool:
    """Whether a tensor states axis separators exactly where its storage has dimensions."""
    return tensor.storage != storage.dst or len(tensor.axis_separators) + 1 == max(1, len(storage.shape))


def test_tensor_types_carry_their_place():
    (relu,) = [
        op for op in placed({"relu": "npu@global.rows[3]"}).main.walk()
        if isinstance(op, CallOp) and op.node is not None and op.node.data == "relu"
    ]  # fmt: skip
    ty = relu.res[0].type
    assert isinstance(ty, TensorType)
    assert str(ty) == 'tensor<1x16x8x8xf32, #lb.vdevice<0, "global.rows", [3]>>'
