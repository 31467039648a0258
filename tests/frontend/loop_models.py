"""Models with loops, written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper
from onnx.helper import make_node

from tests.frontend.models import BOOL, INT64, value

Array = np.ndarray[Any, Any]
WIDTH = 5
CONSTANTS = {
    "half": np.float32(0.5),
    "none": np.int64(0),
    "one": np.int64(1),
    "zero": np.float32(0),
    "limit": np.float32(1e3),
    "w": np.random.default_rng(0).standard_normal((WIDTH, WIDTH)).astype(np.float32) / 4,
}


def model(nodes: Sequence[NodeProto], inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto], **constants):
    """A model of ``nodes``; all know CONSTANTS."""
    tensors = [numpy_helper.from_array(np.asarray(a), name) for name, a in (CONSTANTS | constants).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def body(nodes: Sequence[NodeProto], carried: Sequence[str], results: Sequence[ValueInfoProto]) -> GraphProto:
    """The body of a Loop whose state is vectors; it goes on as it was told where ``results`` have no condition."""
    goes_on = [] if results[0].name == "on" else [value("on", [], BOOL)]
    on = [make_node("Identity", ["go"], ["on"])] if goes_on else []
    inputs = [value("i", [], INT64), value("go", [], BOOL), *(value(name, [WIDTH]) for name in carried)]
    return helper.make_graph([*on, *nodes], "body", inputs, [*goes_on, *results])


def vectors(count: int, *shape: int) -> Array:
    return np.random.default_rng(count).standard_normal((*shape, WIDTH)).astype(np.float32)


def recurrence(trips: int | str, axis: int = 0, back: int = 0, row_axis: int = 0, row_back: int = 0) -> ModelProto:
    """A Scan of ``trips`` steps over rows (2, WIDTH), which carries two values and collects one of them and another."""
    step = helper.make_graph(
        [
            make_node("MatMul", ["h", "w"], ["hw"]),
            make_node("Add", ["hw", "x"], ["s"]),
            make_node("Tanh", ["s"], ["h2"]),
            make_node("Mul", ["a", "half"], ["a1"]),
            make_node("Add", ["a1", "h2"], ["a2"]),
            make_node("Mul", ["h2", "a2"], ["r"]),
            make_node("Identity", ["h2"], ["q"]),
        ],
        "step",
        [value(name, [2, WIDTH]) for name in "hax"],
        [value(name, [2, WIDTH]) for name in ("h2", "a2", "r", "q")],
    )
    rows: list[list[int | str]] = [[2, WIDTH], [2, WIDTH]]
    rows[0].insert(axis, trips)
    rows[1].insert(row_axis, trips)
    scan = make_node(
        "Scan",
        ["h0", "a0", "xs"],
        ["hn", "an", "rs", "qs"],
        name="scan",
        body=step,
        num_scan_inputs=1,
        scan_input_axes=[axis],
        scan_input_directions=[back],
        scan_output_axes=[row_axis, 0],
        scan_output_directions=[row_back, 0],
    )
    state = [value("h0", [2, WIDTH]), value("a0", [2, WIDTH])]
    results = [value("hn", [2, WIDTH]), value("an", [2, WIDTH]), value("rs", rows[1]), value("qs", [trips, 2, WIDTH])]
    return model([scan], [*state, value("xs", rows[0])], results)


def steps(trips: int, axis: int = 0) -> dict[str, Array]:
    xs = np.moveaxis(vectors(trips, trips, 2), 0, axis)
    return {"h0": vectors(1, 2), "a0": vectors(2, 2), "xs": np.ascontiguousarray(xs)}


def nested() -> ModelProto:
    """40 trips, each of 50 trips of a loop inside, then an If, of values of all around."""
    inner = helper.make_graph(
        [
            make_node("Identity", ["go1"], ["on1"]),
            make_node("Mul", ["t", "half"], ["t1"]),
            make_node("Add", ["t1", "e"], ["t2"]),
        ],
        "inner",
        [value("j", [], INT64), value("go1", [], BOOL), value("t", [WIDTH])],
        [value("on1", [], BOOL), value("t2", [WIDTH]), value("t", [WIDTH])],
    )
    then = helper.make_graph([make_node("Sub", ["u", "e"], ["v1"])], "then", [], [value("v1", [WIDTH])])
    other = helper.make_graph([make_node("Neg", ["u"], ["v2"])], "other", [], [value("v2", [WIDTH])])
    nodes = [
        make_node("Gather", ["table", "i"], ["e"], axis=0),
        make_node("Loop", ["n1", "", "s"], ["u", "us"], body=inner),
        make_node("ReduceSum", ["us"], ["sum"], keepdims=0),
        make_node("Less", ["sum", "zero"], ["less"]),
        make_node("If", ["less"], ["s2"], then_branch=then, else_branch=other),
    ]
    results = [value("s2", [WIDTH]), value("us", [50, WIDTH])]
    loop = make_node("Loop", ["n", "", "x"], ["y", "rows"], name="outer", body=body(nodes, "s", results))
    outputs = [value("y", [WIDTH]), value("rows", [40, 50, WIDTH])]
    inputs = [value("x", [WIDTH]), value("table", [40, WIDTH])]
    return model([loop], inputs, outputs, n=np.int64(40), n1=np.int64(50))
