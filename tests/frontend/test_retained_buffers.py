"""Caches that exporters write as Concat of past and new, kept in one buffer whose length is an input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import landbridge as lb

Array = np.ndarray[Any, Any]

HEADS, SIZE, CAPACITY = 2, 4, 12
STATES = {"nk": "pk", "nv": "pv"}


def attention(opset: int = 17, past: int | str = "P") -> ModelProto:
    """What torch and optimum write of a layer: keys and values grow, scores have a mask of all of them."""
    steps: list[int | str] = ["B", HEADS, "S", SIZE]
    shapes: dict[str, list[int | str]] = {"q": steps, "k": steps, "v": steps}
    shapes |= {name: ["B", HEADS, past, SIZE] for name in ("pk", "pv")} | {"mask": ["B", 1, "S", "T"]}
    results: dict[str, list[int | str]] = {"y": steps, "nk": ["B", HEADS, "T", SIZE], "nv": ["B", HEADS, "T", SIZE]}
    sides = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in side.items()]
        for side in (shapes, results)
    ]
    nodes = [
        helper.make_node("Concat", ["pk", "k"], ["nk"], axis=2),
        helper.make_node("Concat", ["pv", "v"], ["nv"], axis=-2),
        helper.make_node("Transpose", ["nk"], ["turned"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "turned"], ["raw"]),
        helper.make_node("Add", ["raw", "mask"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "nv"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "layer", *sides)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


class Numpy:
    """The layer, and its caches that grow; cut off where they are set back."""

    def __init__(self, batch: int) -> None:
        self.keys = self.values = np.zeros((batch, HEADS, 0, SIZE), np.float32)

    def step(self, feeds: dict[str, Array]) -> Array:
        self.keys, self.values = (
            np.concatenate(each, 2) for each in ((self.keys, feeds["k"]), (self.values, feeds["v"]))
        )
        scores = feeds["q"] @ self.keys.swapaxes(2, 3) + feeds["mask"]
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ self.values

    def set_back(self, length: int) -> None:
        self.keys, self.values = self.keys[:, :, :length], self.values[:, :, :length]


def feeds_of(rng: np.random.Generator, batch: int, steps: int, length: int) -> dict[str, Array]:
    feeds = {name: rng.standard_normal((batch, HEADS, steps, SIZE)).astype(np.float32) for name in "qkv"}
    return feeds | {"mask": rng.standard_normal((batch, 1, steps, length + steps)).astype(np.float32)}


@pytest.mark.parametrize(("capacity", "opset"), [("a number", 17), ("open", 17), ("open", 12)])
def test_a_history_in_one_buffer(capacity: str, opset: int) -> None:
    """Steps of several lengths, set back by a smaller length, begun anew by 0; nothing of the caches is moved."""
    batch, rng = 2, np.random.default_rng(4)
    shapes = None if capacity == "open" else dict.fromkeys(("pk", "pv"), (batch, HEADS, CAPACITY, SIZE))
    session = lb.Session(lb.compile(attention(opset), alias=STATES, shapes=shapes))
    for present, past in STATES.items():
        session.bind_state(present, past)
        session.set_input(past, np.zeros((batch, HEADS, CAPACITY, SIZE), np.float32))
    expected, length, addresses = Numpy(batch), 0, set()
    for steps, back in ((4, 0), (1, 0), (1, 0), (1, 3), (5, 0), (3, 0), (2, 12), (1, 0)):
        length -= back
        expected.set_back(length)
        feeds = feeds_of(rng, batch, steps, length)
        for name, value in (feeds | {"P": np.array([length])}).items():
            session.set_input(name, value)
        session.run()
        length += steps
        np.testing.assert_allclose(np.asarray(session.get_output("y")), expected.step(feeds), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(np.asarray(session.get_output("nk"))[:, :, :length], expected.keys)
        addresses |= {session.get_output("nk").data_address, session.get_input("pk").data_address}
    assert len(addresses) == 1


def test_nothing_is_copied_and_kernels_move_what_is_filled_at_most() -> None:
    capacity = 1000
    session = lb.Session(
        lb.compile(attention(), alias=STATES, shapes=dict.fromkeys(("pk", "pv"), (1, HEADS, capacity, SIZE)))
    )
    for present, past in STATES.items():
        session.bind_state(present, past)
    rng = np.random.default_rng(2)
    for length in (0, 3):
        for name, value in (feeds_of(rng, 1, 3, length) | {"P": np.array([length])}).items():
            session.set_input(name, value)
        with lb.ledger() as moves:
            session.run()
    assert moves.total_bytes == 0 and moves.kernel_bytes <= 2 * 6 * HEADS * SIZE * 4


@pytest.mark.parametrize("length", [CAPACITY, CAPACITY + 1, -1])
def test_a_step_that_has_no_space_is_refused_before_anything_is_written(length: int) -> None:
    shapes = dict.fromkeys(("pk", "pv"), (1, HEADS, CAPACITY, SIZE))
    session = lb.Session(lb.compile(attention(), alias=STATES, shapes=shapes))
    rng = np.random.default_rng(2)
    before = rng.random((1, HEADS, CAPACITY, SIZE), np.float32)
    buffers = {"pk": before.copy(), "pv": before.copy()}
    feeds = feeds_of(rng, 1, 1, max(length, 0))
    for name, value in (feeds | {"P": np.array([length])}).items():
        session.set_input(name, value)
    for present, past in STATES.items():
        session.set_input_zero_copy(past, buffers[past])
        session.set_output_zero_copy(present, buffers[past])
    with pytest.raises(lb.ShapeError):
        session.run()
    for buffer in buffers.values():
        np.testing.assert_array_equal(buffer, before)


def test_a_name_that_is_taken_and_a_length_that_is_a_number() -> None:
    """States of one length share an input, which is called as their dimension where nothing else is."""
    named = lb.compile(attention(), alias=STATES)
    assert [spec.name for spec in named.main.inputs][-1] == "P"
    numbers = lb.compile(attention(past=CAPACITY), alias=STATES)
    assert [spec.name for spec in numbers.main.inputs][-2:] == ["mask", "pk.length"]
    taken = attention()
    taken.graph.node[3].output[0] = taken.graph.node[4].input[0] = "P"
    assert "pk.length" in [spec.name for spec in lb.compile(taken, alias=STATES).main.inputs]
