"""Folding: layouts of constants, repeats, what nobody uses; and PrimFuncs that are equal."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graphs import add, double, graph, pack, relu, row_sums, unpack
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from xdsl.dialects import func

import landbridge as lb
from landbridge.errors import CompileError, VerifyError
from landbridge.ir.graph_ops import CallOp, ConstantOp, ToVDeviceOp
from landbridge.ir.module import IRModule
from landbridge.ir.packing import pack_array, packed_shape, unpack_array
from landbridge.ir.types import tensor_type
from landbridge.passes import registry
from landbridge.passes.dedup import content
from landbridge.passes.registry import run_pipeline


def ops(module):
    return [op.name for op in module.main.body.block.ops]


@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    data=st.data(),
)
def test_packing_is_what_its_indices_say(shape, data):
    axes = data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(1, min(2, len(shape))))]
    tiles = [data.draw(st.integers(1, 4)) for _ in axes]
    array = np.arange(1, 1 + np.prod(shape)).reshape(shape)
    packed = pack_array(array, axes, tiles)
    assert packed.shape == packed_shape(shape, axes, tiles)
    for where in np.ndindex(packed.shape):
        plain = list(where[: len(shape)])
        for n, (axis, tile) in enumerate(zip(axes, tiles, strict=True)):
            plain[axis] = plain[axis] * tile + where[len(shape) + n]
        inside = all(i < e for i, e in zip(plain, shape, strict=True))
        assert packed[where] == (array[tuple(plain)] if inside else 0)
    np.testing.assert_array_equal(unpack_array(packed, axes, tiles, shape), array)


def test_layouts_and_views_of_constants_are_computed_once():
    w = np.arange(60, dtype=np.float32).reshape(20, 3)

    def build(g, x):
        c = g.constant(w, "w")
        packed = pack(g, c, [0], [16])
        back = unpack(g, packed, [0], [16], [20, 3])
        joined = g.concat([g.reshape(back, [2, 3], offset=6), g.constant(np.ones((1, 3), np.float32))], 0)
        return [add(g, x, joined), double(g, packed)]

    module = run_pipeline(graph([((3, 3), "float32")], build), ["fold"])
    assert set(ops(module)) == {"lb.constant", "lb.call", "bufferization.alloc_tensor", "func.return"}
    arrays = {a.shape: a for a in module.constants.values()}
    assert set(arrays) == {(3, 3), (2, 3, 16)}
    np.testing.assert_array_equal(arrays[3, 3], [[6, 7, 8], [9, 10, 11], [1, 1, 1]])
    np.testing.assert_array_equal(arrays[2, 3, 16], pack_array(w, [0], [16]))


def test_a_constant_that_crosses_is_loaded_on_the_other_side():
    def build(g, x):
        c = g.constant(np.ones(4, np.float32))
        return [g.reshape(c, [2, 2])]

    module = graph([((4,), "float32")], build)
    module.vdevices = module.vdevices * 2
    first = next(op for op in module.main.body.block.ops if isinstance(op, ConstantOp))
    crossing = ToVDeviceOp(first.result, tensor_type([4], "float32"))
    module.main.body.block.insert_op_after(crossing, first)
    first.result.replace_uses_with_if(crossing.result, lambda use: use.operation is not crossing)
    assert ops(run_pipeline(module, ["fold"])) == ["lb.constant", "func.return"]


def test_unused_operations_primfuncs_and_constants_go():
    def build(g, x):
        double(g, g.constant(np.ones(4, np.float32)))
        return [relu(g, x)]

    module = run_pipeline(graph([((4,), "float32")], build), ["fold"])
    assert ops(module) == ["bufferization.alloc_tensor", "lb.call", "func.return"]
    assert len(module.prims()) == 1 and not module.constants


def test_equal_primfuncs_are_retained_once_and_equal_calls_are_done_once():
    def build(g, x):
        return [add(g, relu(g, x), relu(g, x)), double(g, relu(g, x))]

    module = graph([((4,), "float32")], build)
    assert len(module.prims()) == 5
    module = run_pipeline(module, ["dedup", "fold"])
    assert len(module.prims()) == 3
    assert ops(module).count("lb.call") == 3


def test_content_tells_apart_what_differs_in_one_number():
    def build(g, x):
        g.elementwise("a", [x], lambda s, a: a * 2.0)
        g.elementwise("b", [x], lambda s, a: a * 3.0)
        g.elementwise("c", [x], lambda s, a: a * 2.0)
        g.elementwise("d", [x], lambda s, a: a * a)
        return [relu(g, x)]

    a, b, c, d, _ = graph([((4,), "float32")], build).prims().values()
    assert content(a) == content(c)
    assert len({content(f) for f in (a, b, d)}) == 3


def test_moves_marks_what_only_moves():
    def build(g, x):
        def transpose(p):
            p.generic("pp", [3, 4], [(p.inputs[0], lambda i, j: (j, i))], [(p.outputs[0], lambda i, j: (i, j))],
                      lambda s, a: a)  # fmt: skip

        def gather(p):
            p.generic("p", [5], [], [(p.outputs[0], lambda i: (i,))],
                      lambda s: s.load(p.inputs[0], [s.binary("rem", s.index(0), 4), 1], "float32"))  # fmt: skip

        g.call("transpose", [x], [((3, 4), "float32")], transpose)
        g.call("gather", [x], [((5,), "float32")], gather)
        return [relu(g, x), row_sums(g, x)]

    module = run_pipeline(graph([((4, 3), "float32")], build), ["moves"])
    marked = {n.rsplit("_", 1)[0]: f.attributes.get("lb.moves") for n, f in module.prims().items()}
    assert {n: a.value.data for n, a in marked.items() if a} == {"transpose": 48, "gather": 20}
    assert set(marked) == {"transpose", "gather", "relu", "row_sums"}


def test_passes_have_names_and_documentation():
    assert {"fold", "dedup", "place", "bufferize", "inplace", "moves", "plan"} <= set(registry.names())
    assert all(registry.get(name).doc for name in registry.names())
    with pytest.raises(CompileError, match=r"no pass 'fould'; legal: .*fold"):
        run_pipeline(graph([((4,), "float32")], lambda g, x: [relu(g, x)]), ["fould"])


@pytest.mark.parametrize(
    ("every", "pipeline", "named"),
    [
        (True, ["breaking", "fold", "dedup"], "after pass 'breaking'"),
        (False, ["breaking", "dedup", "bufferize"], "after pass 'dedup': .*dump=FOLDER"),
        (False, ["breaking", "dedup"], "after pass 'dedup': .*dump=FOLDER"),
    ],
)
def test_a_broken_invariant_is_found_after_its_pass_or_before_buffers_and_at_the_end(
    every: bool, pipeline: list[str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaking(module: IRModule) -> None:
        constant = ConstantOp("gone", next(iter(module.main.body.block.args)).type)
        module.main.body.block.insert_op_before(constant, module.main.body.block.first_op)

    monkeypatch.setitem(registry._passes, "breaking", registry.Pass("breaking", breaking, "Break."))
    module = graph([((4,), "float32")], lambda g, x: [relu(g, x)])
    with pytest.raises(VerifyError, match=named):
        run_pipeline(module, pipeline, every=every)


def test_dumps_show_every_step(tmp_path):
    module = graph([((4,), "float32")], lambda g, x: [relu(g, x)])
    seconds: dict[str, float] = {}
    run_pipeline(module, ["fold", "dedup"], tmp_path, seconds)
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["00-import.mlir", "01-fold.mlir", "02-dedup.mlir"]
    assert set(seconds) == {"fold", "dedup"}
    assert isinstance(module.main, func.FuncOp)
    assert any(isinstance(op, CallOp) for op in module.main.body.block.ops)


def test_layers_that_share_a_weight_by_identity_keep_it_once() -> None:
    weight = np.random.default_rng(0).standard_normal((64, 64), dtype=np.float32)
    nodes = [
        helper.make_node("Identity", ["w"], ["again"]),
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "again"], ["y"]),
    ]
    tensors = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [32, 64]) for name in "xy"]
    graph = helper.make_graph(nodes, "shared", tensors[:1], tensors[1:], [numpy_helper.from_array(weight, "w")])
    made = lb.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    assert sum(each.nbytes for each in made.constants.values()) == weight.nbytes
    x = np.random.default_rng(1).standard_normal((32, 64), dtype=np.float32)
    session = lb.Session(made)
    session.set_input("x", x)
    session.run()
    wanted = np.maximum(x.astype(np.float64) @ weight, 0) @ weight
    got = np.asarray(session.get_output(0))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=2e-3)  # 128 products, each sum of about 1000 rounded
