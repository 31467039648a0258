"""What unfolds into more nodes than allowed is refused before it is unfolded."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import ModelProto, helper

import landbridge as lb
from landbridge.errors import BudgetError, ImportModelError
from landbridge.frontend.onnx.import_request import ImportRequest
from landbridge.frontend.onnx.importer import import_onnx
from landbridge.frontend.onnx.unfolded_size import unfolded_nodes
from landbridge.targets import Target
from tests.frontend.models import BOOL, INT64, model, value

TARGETS = (Target("llvm"),)
#: A device has no loops, so that they are unfolded for it.
UNFOLDING = (Target("opencl"),)
OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]


def twice(depth: int) -> ModelProto:
    """A function that calls one twice that calls one twice ..., 2 ** ``depth`` Neg in all."""
    functions = []
    for i in range(depth + 1):
        kind = {"op_type": f"f{i - 1}", "domain": "local"} if i else {"op_type": "Neg"}
        nodes = [helper.make_node(inputs=["a"], outputs=["b"], **kind)]
        nodes += [helper.make_node(inputs=["b"], outputs=["c"], **kind)] if i else []
        functions.append(helper.make_function("local", f"f{i}", ["a"], ["c" if i else "b"], nodes, OPSETS))
    node = helper.make_node(f"f{depth}", ["x"], ["y"], domain="local")
    graph = helper.make_graph([node], "g", [value("x", [2])], [value("y", [2])])
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=9, functions=functions)


def loop(trips: int, nodes: list, name: str, result: str = "b") -> object:
    """A Loop of ``trips`` trips over ``nodes``, which make ``result`` of ``a``."""
    body = helper.make_graph(
        [helper.make_node("Identity", [f"go_{name}"], [f"on_{name}"]), *nodes],
        name,
        [value(f"i_{name}", [], INT64), value(f"go_{name}", [], BOOL), value(f"a_{name}", [2])],
        [value(f"on_{name}", [], BOOL), value(result, [2])],
    )
    count = helper.make_node("Constant", [], [f"n_{name}"], value_int=trips)
    return count, body


def loops_in_loops(depth: int, trips: int) -> ModelProto:
    """Loops in loops, ``trips ** depth`` Neg in all."""
    nodes = [helper.make_node("Neg", [f"a_{depth - 1}"], [f"b_{depth - 1}"])]
    for level in reversed(range(depth)):
        count, body = loop(trips, nodes, str(level), f"b_{level}")
        source = f"a_{level - 1}" if level else "x"
        target = f"b_{level - 1}" if level else "y"
        nodes = [count, helper.make_node("Loop", [f"n_{level}", "", source], [target], name=f"loop{level}", body=body)]
    return model(nodes, [value("x", [2])], [value("y", [2])])


@pytest.mark.parametrize("depth", [17, 30, 60])
def test_functions_that_unfold_into_too_many_nodes(depth):
    with pytest.raises(BudgetError, match=rf"the model unfolds into {2**depth} nodes.*may have 100000.*max_nodes="):
        import_onnx(ImportRequest(twice(depth), TARGETS))


def test_functions_within_the_budget():
    x = np.arange(2, dtype=np.float32) + 1
    (y,) = lb.Session(lb.compile(twice(3), max_nodes=8))(x)
    assert (np.asarray(y) == x).all()
    with pytest.raises(BudgetError, match="8 nodes"):
        lb.compile(twice(3), max_nodes=7)


def test_the_count_is_that_of_the_inlined_model():
    loaded = ir.serde.deserialize_model(twice(6))
    counted = unfolded_nodes(loaded)
    ir.passes.common.InlinePass()(loaded)
    assert counted == sum(1 for _ in loaded.graph.all_nodes()) == 64


def test_functions_that_call_themselves():
    call = helper.make_node("g", ["a"], ["b"], domain="local")
    back = helper.make_node("f", ["a"], ["b"], domain="local")
    functions = [
        helper.make_function("local", name, ["a"], ["b"], [node], OPSETS) for name, node in (("f", call), ("g", back))
    ]
    loaded = ir.serde.deserialize_model(twice(1))
    for function in functions:
        made = ir.serde.deserialize_function(function)
        loaded.functions[made.identifier()] = made
    with pytest.raises(ImportModelError, match=r"call themselves: local\.f -> local\.g -> local\.f"):
        unfolded_nodes(loaded)


@pytest.mark.parametrize(("depth", "trips"), [(2, 4000), (3, 4000), (8, 64)])
def test_loops_in_loops_are_refused_before_they_run(depth, trips):
    with pytest.raises(BudgetError, match=rf"Loop node 'loop0', of {trips} iterations, unfolds into \d+ nodes"):
        import_onnx(ImportRequest(loops_in_loops(depth, trips), UNFOLDING))


def test_loops_in_loops_that_stay_loops_have_the_nodes_of_their_bodies():
    assert import_onnx(ImportRequest(loops_in_loops(8, 100), TARGETS, max_nodes=30))


def test_loops_in_loops_within_the_budget():
    x = np.arange(2, dtype=np.float32) + 1
    (y,) = lb.Session(lb.compile(loops_in_loops(3, 3)))(x)
    assert (np.asarray(y) == -x).all()


def loop_until(end: int, outer: int = 0) -> onnx.ModelProto:
    """A Loop of up to 4000 trips of 61 Neg that a condition ends after trip ``end``, in another one if ``outer``.

    It compares squares, which no import counts ahead.
    """

    def until(last: int, nodes: list[onnx.NodeProto], output: str, level: str) -> onnx.GraphProto:
        names = {name: f"{name}{level}" for name in ("last", "i", "square", "on", "go", "a")}
        return helper.make_graph(
            [
                helper.make_node("Constant", [], [names["last"]], value_int=last**2),
                helper.make_node("Mul", [names["i"], names["i"]], [names["square"]]),
                helper.make_node("Less", [names["square"], names["last"]], [names["on"]]),
                *nodes,
            ],
            f"body{level}",
            [value(names["i"], [], INT64), value(names["go"], [], BOOL), value(names["a"], [2])],
            [value(names["on"], [], BOOL), value(output, [2])],
        )

    count = helper.make_node("Constant", [], ["n"], value_int=4000)
    body = until(
        end, [helper.make_node("Neg", ["a0" if i == 0 else f"c{i - 1}"], [f"c{i}"]) for i in range(61)], "c60", "0"
    )
    if outer:
        body = until(outer, [helper.make_node("Loop", ["n", "", "a1"], ["b"], name="inner", body=body)], "b", "1")
    nodes = [count, helper.make_node("Loop", ["n", "", "x"], ["y"], name="loop", body=body)]
    return model(nodes, [value("x", [2])], [value("y", [2])])


def test_a_loop_that_its_condition_ends_is_not_counted_ahead():
    """4000 trips of 60 nodes would be too many; the condition ends it after three."""
    x = np.arange(2, dtype=np.float32)
    (y,) = lb.Session(lb.compile(loop_until(3)))(x)
    assert (np.asarray(y) == x).all()  # trips 0 to 3, of 61 Neg each


@pytest.mark.parametrize(("end", "outer", "name"), [(4000, 0, "loop"), (2, 4000, "(loop|inner)"), (40, 1, "inner")])
def test_a_loop_that_its_condition_does_not_end_soon_is_refused_long_before_the_budget(end, outer, name):
    with pytest.raises(BudgetError, match=rf"{name}'.* which its condition ends, has .* may have 400 of the 10000"):
        import_onnx(ImportRequest(loop_until(end, outer), UNFOLDING, max_nodes=10_000))


def test_what_a_loop_inside_has_counted_is_not_counted_again():
    """Two trips of two trips of 65 nodes, and two of 4 around them: 268 in all, twice that would be too many."""
    assert import_onnx(ImportRequest(loop_until(1, 1), UNFOLDING, max_nodes=300 * 25))


def test_a_scan_and_a_recurrent_layer():
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "r"], ["t"])], "b", [value("s", [2]), value("r", [2])], [value("t", [2])]
    )
    scan = helper.make_node("Scan", ["x", "rows"], ["y"], name="scan", body=body, num_scan_inputs=1)
    graph = model([scan], [value("x", [2]), value("rows", [4000, 2])], [value("y", [2])])
    with pytest.raises(BudgetError, match="Scan node 'scan', of 4000 iterations, unfolds into 4000 nodes"):
        import_onnx(ImportRequest(graph, UNFOLDING, max_nodes=4000))
    lstm = helper.make_node("LSTM", ["x", "w", "r"], ["y"], name="lstm", hidden_size=2)
    weights = {"w": np.zeros((1, 8, 2), np.float32), "r": np.zeros((1, 8, 2), np.float32)}
    inputs = [value("x", [4000, 1, 2])]
    layers = model([lstm], inputs, ["y"], weights)
    import_onnx(ImportRequest(layers, TARGETS, max_nodes=100))  # one kernel, however many steps
