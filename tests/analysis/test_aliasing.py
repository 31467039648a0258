"""Outputs in the memory of an input, of graphs drawn at random: refused, or what two memories give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.session.test_states_on_devices import PLACES, target_of

import landbridge as lb

EXTENT = 8


def drawn(rng: np.random.Generator) -> ModelProto:
    """Nodes on matrices, of which ``x`` is an input that is read by some, and ``y`` one of the last results."""
    values, nodes = ["x", "w"], []
    for number in range(int(rng.integers(1, 7))):
        a, b = (str(rng.choice(values)) for _ in "ab")
        kind = rng.choice(
            ["Add", "Mul", "Tanh", "Transpose", "MatMul", "ScatterND", "ScatterElements", "Softmax", "Identity"]
        )
        result = f"v{number}"
        match kind:
            case "ScatterND":
                nodes.append(helper.make_node(kind, [a, "at", "rows"], [result]))
            case "ScatterElements":
                nodes.append(helper.make_node(kind, [a, "places", "rows"], [result], axis=int(rng.integers(2))))
            case "Tanh" | "Transpose" | "Softmax" | "Identity":
                nodes.append(helper.make_node(kind, [a], [result]))
            case _:
                nodes.append(helper.make_node(kind, [a, b], [result]))
        values.append(result)
    inner = values[2:]
    y = inner[-1] if rng.random() < 0.6 else str(rng.choice(inner))
    z = str(rng.choice(inner))
    nodes.append(helper.make_node("Add", [z, str(rng.choice(values))], ["z"]))
    for node in nodes:
        for side in (node.input, node.output):
            side[:] = ["y" if name == y else name for name in side]
    square = (TensorProto.FLOAT, (EXTENT, EXTENT))
    facts = {
        "x": square,
        "w": square,
        "at": (TensorProto.INT64, (2, 1)),
        "places": (TensorProto.INT64, (2, EXTENT)),
        "rows": (TensorProto.FLOAT, (2, EXTENT)),
    }
    inputs = [helper.make_tensor_value_info(name, *kind) for name, kind in facts.items()]
    outputs = [helper.make_tensor_value_info(name, *square) for name in ("y", "z")]
    graph = helper.make_graph(nodes, "drawn", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def fed(rng: np.random.Generator) -> dict[str, Any]:
    floats = {name: rng.standard_normal((EXTENT, EXTENT)).astype(np.float32) for name in "xw"}
    places = np.stack([rng.permutation(EXTENT), rng.permutation(EXTENT)])
    rows = rng.standard_normal((2, EXTENT)).astype(np.float32)
    return {**floats, "at": rng.integers(0, EXTENT, (2, 1)), "places": places, "rows": rows}


@pytest.mark.sample(8)
@pytest.mark.parametrize("seed", range(400))
def test_drawn_graphs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model, feeds = drawn(rng), fed(rng)
    plain = lb.Session(lb.compile(model))(feeds)
    try:
        executable = lb.compile(model, alias={"y": "x"})
    except lb.CompileError as error:
        assert "node" in str(error) or "kernel" in str(error)
        return
    separate = lb.Session(executable)(feeds)
    one = feeds["x"].copy()
    session = lb.Session(executable, num_threads=1 + seed % 2)
    given = [one if name == "x" else value for name, value in feeds.items()]
    z = np.empty_like(one)
    session(*given, out=[one, z])
    for found, name in ((one, "y"), (z, "z")):
        np.testing.assert_array_equal(found, np.asarray(separate[name]))
        np.testing.assert_allclose(found, np.asarray(plain[name]), rtol=1e-5, atol=1e-5)


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", range(240))
def test_drawn_graphs_on_devices(seed: int) -> None:
    """On a grid of workgroups too, and where a CPU runs a part of the nodes."""
    rng, place = np.random.default_rng(seed), list(PLACES)[seed % len(PLACES)]
    model, feeds = drawn(rng), fed(rng)
    for number, node in enumerate(model.graph.node):
        node.name = f"n{number}"
    on_cpu = {node.name: "cpu" for node in model.graph.node if seed % 2 and rng.random() < 0.4}
    targets = {"npu": target_of(place), "cpu": lb.Target("llvm")} if on_cpu else {"npu": target_of(place)}
    plain = lb.Session(lb.compile(model))(feeds)
    try:
        executable = lb.compile(model, targets, place=on_cpu, alias={"y": "x"})
    except lb.CompileError as error:
        assert "node" in str(error) or "kernel" in str(error)
        return
    session = lb.Session(executable, devices={"npu": PLACES[place]}, num_threads=1 + seed % 2)
    for name, value in feeds.items():
        session.set_input(name, value)
    for run in range(3):  # with two memories, then with one
        if run == 1:
            session.bind_state("y", "x")
        session.set_input("x", feeds["x"])
        session.run()
        for name in "yz":
            found = np.asarray(session.get_output(name).to_device("cpu"))
            np.testing.assert_allclose(found, np.asarray(plain[name]), rtol=1e-4, atol=1e-5)
