"""Fusion: what merges, what must not, and that results stay the same when the fused kernels run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from graphs import graph
from native import NativeRun
from nets import constant, conv, elementwise, reduce_last, slice_last, transpose
from test_bufferize import build as compile_module
from xdsl.dialects import bufferization, linalg

from landbridge.ir.graph_ops import CallOp, IfOp, ViewOp
from landbridge.ir.module import IRModule
from landbridge.ir.stages import view_generic, view_prim
from landbridge.passes.registry import run_pipeline

Shapes = Sequence[Sequence[int]]


def run(module: IRModule, shapes: Shapes) -> list[np.ndarray]:
    inputs = [np.random.default_rng(i + 1).standard_normal(s).astype(np.float32) for i, s in enumerate(shapes)]
    return NativeRun(compile_module(module))(*inputs)


def fused(shapes: Shapes, build: Callable) -> IRModule:
    """The fused module, after checking that it computes what the module did."""
    typed = [(s, "float32") for s in shapes]
    expected = run(graph(typed, build), shapes)
    module = run_pipeline(graph(typed, build), ["fuse"])
    assert IRModule.parse(module.print(), module.targets).print() == module.print()
    found = run(run_pipeline(graph(typed, build), ["fuse", "fold"]), shapes)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(b, a, rtol=2e-5, atol=2e-6)
    return module


def calls(module: IRModule) -> list[CallOp]:
    return [op for op in module.main.walk() if isinstance(op, CallOp)]


def stages(module: IRModule, call: CallOp) -> list[str]:
    """One word a stage: the iterators of generics, else the operation."""
    function = module.prims()[call.callee.root_reference.data]
    return [
        view_generic(op).iterators if isinstance(op, linalg.ops.GenericOp) else op.name.split(".")[1]
        for op in view_prim(function).stages
    ]


def relu(g, x):
    return elementwise(g, lambda s, a: s.maximum(a, 0.0), x)


def test_an_elementwise_chain_is_one_stage():
    def build(g, x, y):
        a = elementwise(g, lambda s, a, b: a + b, x, y)
        b = elementwise(g, lambda s, a: s.exp(a), a)
        return [elementwise(g, lambda s, a, b: a * b, b, constant(g, 6))]

    module = fused([(4, 6), (4, 6)], build)
    (call,) = calls(module)
    assert stages(module, call) == ["pp"]
    assert len(call.inputs) == 3
    assert len(module.prims()) == 1
    assert sum(isinstance(op, bufferization.AllocTensorOp) for op in module.main.body.block.ops) == 1


def test_equal_layers_are_merged_once_and_stay_equal():
    def layer(g, x, seed):
        t = conv(g, x, 3, 1, seed=seed)
        gate = elementwise(g, lambda s, a: s.minimum(s.maximum(a * 0.2 + 0.5, 0.0), 1.0), t)
        return elementwise(g, lambda s, a, b: a * b, t, gate)

    def layers(count):
        def build(g, x):
            for number in range(count):
                x = layer(g, x, number)
            return [x]

        typed = [((1, 3, 6, 6), "float32")]
        expected = run(graph(typed, build), [(1, 3, 6, 6)])
        found = run(run_pipeline(graph(typed, build), ["dedup", "fuse"]), [(1, 3, 6, 6)])
        np.testing.assert_allclose(found[0], expected[0], rtol=2e-5, atol=2e-6)
        module = run_pipeline(graph(typed, build), ["dedup", "fuse"])
        return [call.callee_name for call in calls(module)], len(module.prims())

    (one, alone), (three, together) = layers(1), layers(3)
    assert len(three) == 3 * len(one)
    assert three[: len(one)] * 3 == three
    assert together == alone == len(set(one))


def test_names_of_merged_nodes_are_joined_and_stay_short():
    def build(g, x):
        for i in range(40):
            g.node = f"node_{i}"
            x = relu(g, x)
        return [x]

    (call,) = calls(fused([(4,)], build))
    assert call.node.data == "node_0+..+node_39"
    (call,) = calls(fused([(4,)], lambda g, x: [relu(g, elementwise(g, lambda s, a: a + 1.0, x))]))
    assert call.node.data == "ew"


def test_a_diamond_reads_its_input_once():
    def hardswish(g, x):
        t = conv(g, x, 4, 3)
        gate = elementwise(g, lambda s, a: s.minimum(s.maximum(a * 0.2 + 0.5, 0.0), 1.0), t)
        return [elementwise(g, lambda s, a, b: a * b, t, gate)]

    module = fused([(1, 3, 6, 6)], hardswish)
    (call,) = calls(module)
    assert stages(module, call) == ["pad", "fill", "pppprrr", "pppp"]
    *_, last = view_prim(module.prims()[call.callee.root_reference.data]).generics()
    assert len(last.ins) == 1


def test_a_value_used_twice_by_one_call_is_one_operand():
    module = fused([(4, 6)], lambda g, x: [elementwise(g, lambda s, a, b: a * b, x, x)])
    (call,) = calls(module)
    assert len(call.inputs) == 1


def test_a_residual_add_follows_the_later_convolution():
    def build(g, x):
        a = conv(g, x, 4, 3)
        b = conv(g, x, 4, 1)
        return [relu(g, elementwise(g, lambda s, a, b: a + b, a, b))]

    module = fused([(1, 3, 6, 6)], build)
    first, second = calls(module)
    assert stages(module, first) == ["pad", "fill", "pppprrr"]
    assert stages(module, second) == ["fill", "pppprrr", "pppp"]
    assert first.res[0] in second.inputs


def test_what_is_done_to_one_of_two_convolutions_is_done_where_it_is_computed():
    def build(g, x):
        a, b = (
            elementwise(
                g, lambda s, a, m, n: a * m + n, conv(g, x, 4), constant(g, 4, 1, 1), constant(g, 4, 1, 1, seed=1)
            )
            for _ in range(2)
        )
        return [relu(g, elementwise(g, lambda s, a, b: a + b, a, b))]

    module = fused([(1, 3, 6, 6)], build)
    first, second = calls(module)
    assert stages(module, first) == stages(module, second) == ["fill", "pppprrr", "pppp"]
    assert [len(call.inputs) for call in (first, second)] == [4, 5]


def test_what_is_done_to_an_input_of_a_sum_is_done_by_its_reader():
    def build(g, x, y):
        return [elementwise(g, lambda s, a, b: a + b, relu(g, y), relu(g, conv(g, x, 4)))]

    (call,) = calls(fused([(1, 3, 6, 6), (1, 4, 6, 6)], build))
    assert len(call.inputs) == 3


def test_nothing_is_computed_again_for_a_window():
    def build(g, x):
        return [conv(g, elementwise(g, lambda s, a: s.exp(a), x), 4, 3)]

    assert len(calls(fused([(1, 3, 6, 6)], build))) == 2


def test_nothing_is_computed_again_for_a_broadcast():
    def build(g, x, y):
        gate = elementwise(g, lambda s, a: s.exp(a), y)
        return [elementwise(g, lambda s, a, b: a * b, x, gate)]

    module = fused([(1, 4, 80, 80), (1, 4, 1, 1)], build)
    assert len(calls(module)) == 2  # rows of 80 x 80 are too long to keep


def test_a_result_that_others_read_stays():
    def build(g, x):
        a = relu(g, conv(g, x, 4))
        return [a, elementwise(g, lambda s, a: a + 1.0, a)]

    module = fused([(1, 3, 6, 6)], build)
    assert [stages(module, c) for c in calls(module)] == [["fill", "pppprrr", "pppp"], ["pppp"]]


def test_copies_disappear_into_cheap_readers_and_indices_are_rewritten():
    def build(g, x):
        counted = g.call(
            "count",
            [x],
            [((4, 6), "float32")],
            lambda p: p.generic(
                "pp",
                [4, 6],
                [(p.inputs[0], lambda i, j: (i, j))],
                [(p.outputs[0], lambda i, j: (i, j))],
                lambda s, a: a + s.cast(s.cast(s.index(0) * 10 + s.index(1), "int32"), "float32"),
            ),
        )[0]
        return [elementwise(g, lambda s, a: a + 1.0, slice_last(g, counted, 1, 2, 3))]

    (call,) = calls(fused([(4, 6)], build))
    assert call.res[0].type.get_shape() == (4, 2)


def test_a_transpose_does_not_take_vectors_from_heavy_math():
    def build(g, x):
        return [elementwise(g, lambda s, a: s.exp(s.math("tanh", a)), transpose(g, x, [1, 0]))]

    assert len(calls(fused([(32, 64)], build))) == 2

    def cheap(g, x):
        return [elementwise(g, lambda s, a: a + 1.0, transpose(g, x, [1, 0]))]

    assert len(calls(fused([(32, 64)], cheap))) == 1


def test_a_transposed_operand_stays_outside_of_an_epilogue():
    def build(g, x, y):
        return [elementwise(g, lambda s, a, b: a + b, conv(g, x, 4), transpose(g, y, [0, 1, 3, 2]))]

    module = fused([(1, 3, 8, 8), (1, 4, 8, 8)], build)
    assert [stages(module, c) for c in calls(module)] == [["pppp"], ["fill", "pppprrr", "pppp"]]


def layer_norm(g, x, width):
    d = elementwise(g, lambda s, a, b: a - b, x, reduce_last(g, x))
    variance = reduce_last(g, elementwise(g, lambda s, a: a * a, d))
    deviation = elementwise(g, lambda s, a: s.sqrt(a), elementwise(g, lambda s, a: a + 1e-5, variance))
    y = elementwise(g, lambda s, a, b: a / b, d, deviation)
    y = elementwise(g, lambda s, a, b: a * b, y, constant(g, width))
    return elementwise(g, lambda s, a, b: a + b, y, constant(g, width, seed=1))


def test_a_layer_norm_in_pieces_is_one_call():
    module = fused([(2, 5, 24)], lambda g, x: [layer_norm(g, x, 24)])
    (call,) = calls(module)
    assert stages(module, call) == ["fill", "ppr", "ppp", "ppp", "fill", "ppr", "ppp", "ppp"]


def test_a_softmax_in_pieces_is_one_call():
    def build(g, x):
        e = elementwise(g, lambda s, a, b: s.exp(a - b), x, reduce_last(g, x, kind="max"))
        return [elementwise(g, lambda s, a, b: a / b, e, reduce_last(g, e))]

    assert len(calls(fused([(3, 7, 20)], build))) == 1


def test_long_rows_are_left_alone():
    def build(g, x):
        return [elementwise(g, lambda s, a, b: a - b, x, reduce_last(g, x))]

    assert len(calls(fused([(2, 5000)], build))) == 2
    assert len(calls(fused([(2, 4000)], build))) == 1


def test_a_prologue_joins_a_plain_reduction():
    module = fused([(2, 5000)], lambda g, x: [reduce_last(g, elementwise(g, lambda s, a: a * a, x))])
    (call,) = calls(module)
    assert stages(module, call) == ["fill", "pr", "pp"]


def product_of_rows(g, x, y):
    """The matrix product of x (rows, sums) and y (sums, columns)."""
    (rows, sums), (_, columns) = x.type.get_shape(), y.type.get_shape()

    def build(p):
        ins = [(p.inputs[0], lambda i, j, k: (i, k)), (p.inputs[1], lambda i, j, k: (k, j))]
        out = [(p.outputs[0], lambda i, j, k: (i, j))]
        p.generic("ppr", [rows, columns, sums], ins, out, lambda s, acc, a, b: acc + a * b, init=0.0)

    return g.call("matmul", [x, y], [((rows, columns), "float32")], build)[0]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("rows", "kernels"), [(1, 1), (4, 1), (8, 1), (9, 2)])
def test_a_product_of_few_rows_reads_a_transpose_and_a_part_where_they_are(rows, kernels):
    """Keys of a cache, of which a step reads the filled part, and reads it once or for a group of heads."""

    def by_transpose(g, x, keys):
        return [product_of_rows(g, x, transpose(g, keys, (1, 0)))]

    def by_part(g, x, values):
        return [product_of_rows(g, x, slice_last(g, values, 0, 24))]

    assert len(calls(fused([(rows, 32), (40, 32)], by_transpose))) == kernels
    assert len(calls(fused([(rows, 32), (32, 48)], by_part))) == kernels


def test_a_product_reads_no_part_in_steps_where_it_is():
    def build(g, x, values):
        return [product_of_rows(g, x, slice_last(g, values, 0, 24, step=2))]

    assert len(calls(fused([(2, 32), (32, 48)], build))) == 2


def test_an_epilogue_crosses_a_reshape():
    def build(g, x):
        y = g.reshape(conv(g, x, 4, 3), (1, 4, 36))
        return [elementwise(g, lambda s, a, b: s.maximum(a + b, 0.0), y, constant(g, 4, 1))]

    module = fused([(1, 3, 6, 6)], build)
    (call,) = calls(module)
    assert stages(module, call) == ["pad", "fill", "pppprrr", "pppp"]
    assert call.res[0].type.get_shape() == (1, 4, 6, 6)
    assert sum(isinstance(op, ViewOp) for op in module.main.body.block.ops) == 2  # of the result and of the constant


def test_reshapes_there_and_back_vanish():
    def build(g, x):
        y = relu(g, g.reshape(conv(g, x, 4), (1, 4, 36)))
        return [conv(g, g.reshape(y, (1, 4, 6, 6)), 2), g.reshape(g.reshape(y, (4, 36)), (2, 72))]

    module = fused([(1, 3, 6, 6)], build)
    first, second = calls(module)
    assert first.res[0] in second.inputs
    (view,) = [op for op in module.main.body.block.ops if isinstance(op, ViewOp)]
    assert view.source is first.res[0]


def test_a_reshape_that_mixes_axes_is_not_crossed():
    def build(g, x):
        y = g.reshape(conv(g, x, 4), (4, 6, 6))
        return [elementwise(g, lambda s, a, b: a + b, g.reshape(y, (8, 18)), constant(g, 18))]

    assert len(calls(fused([(1, 3, 6, 6)], build))) == 2


def test_unit_dimensions_are_crossed_by_broadcasts():
    def build(g, x):
        m = reduce_last(g, x, keep=False)
        return [elementwise(g, lambda s, a, b: a + b, g.reshape(relu(g, m), (4, 1)), constant(g, 1, 1))]

    module = fused([(4, 6)], build)
    assert len(calls(module)) == 1


def test_a_view_of_a_part_is_not_crossed():
    def build(g, x):
        return [relu(g, g.reshape(relu(g, x), (2, 6), offset=6))]

    assert len(calls(fused([(4, 6)], build))) == 2


def test_shared_primfuncs_are_copied_before_they_change():
    def build(g, x):
        return [relu(g, conv(g, x, 4)), elementwise(g, lambda s, a: a + 1.0, conv(g, x, 4))]

    shapes = [(1, 3, 6, 6)]
    expected = run(graph([(shapes[0], "float32")], build), shapes)
    module = run_pipeline(graph([(shapes[0], "float32")], build), ["dedup", "fuse", "fold"])
    assert len(calls(module)) == 2
    for a, b in zip(expected, run(module, shapes), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6)


def first_is_positive(p):
    p.generic("", [], [(p.inputs[0], lambda: (0, 0))], [(p.outputs[0], lambda: ())], lambda s, a: a > 0.0)


def test_branches_fuse_inside_and_never_across():
    def build(g, x):
        before = elementwise(g, lambda s, a: a + 1.0, x)
        condition = g.call("positive", [x], [((), "bool")], first_is_positive)[0]
        return g.branch(
            condition,
            lambda h: [relu(h, elementwise(h, lambda s, a: a * 2.0, before))],
            lambda h: [elementwise(h, lambda s, a: a * 3.0, before)],
        )

    module = fused([(4, 6)], build)
    (branch,) = [op for op in module.main.body.block.ops if isinstance(op, IfOp)]
    assert [sum(isinstance(op, CallOp) for op in r.block.ops) for r in branch.regions] == [1, 1]
    assert len(calls(module)) == 4
