"""What bind_state() refuses at the call, and that nothing has changed then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import landbridge as lb
from landbridge.vm.run_arguments import RunArguments
from tests.frontend.test_retained_buffers import STATES, attention, feeds_of
from tests.session.test_state import recurrent

LARGEST = (1 << 31) - 1


@pytest.fixture(scope="module")
def grown() -> lb.Executable:
    """Keys and values that grow, in buffers of any capacity."""
    return lb.compile(attention(), alias=STATES)


@pytest.mark.parametrize(
    ("capacity", "why"),
    [
        (0, "capacity=0; legal: from 1"),
        (-1, "capacity=-1; legal: from 1"),
        (True, "capacity is True; legal: a whole number"),
        ("x", "capacity is 'x'; legal: a whole number"),
        (1.5, "capacity is 1.5; legal: a whole number"),
        (float("nan"), "capacity is nan; legal: a whole number"),
        ([4], r"capacity is \[4\]; legal: a whole number"),
        (1 << 31, rf"capacity={1 << 31}; legal: dimension 'P_capacity', which is 1\.\.{LARGEST}: numbers as {LARGEST}"),
        (1 << 70, rf"capacity={1 << 70}; legal: dimension 'P_capacity'"),
    ],
)
def test_a_capacity_that_no_run_could_have_is_refused_at_the_call(
    grown: lb.Executable, capacity: Any, why: str
) -> None:
    session = lb.Session(grown)
    with pytest.raises(lb.InputError, match=why):
        session.bind_state(capacity=capacity)
    state = session.bind_state(capacity=np.int64(4))
    session(feeds_of(np.random.default_rng(1), 2, 3, 0))
    assert type(state.capacity) is int and (state.capacity, state.length) == (4, 3)
    with pytest.raises(lb.InputError, match=why):
        session.bind_state(capacity=capacity)
    with pytest.raises(lb.InputError, match=why):
        state.resize(capacity)
    assert (state.capacity, state.length, state.is_bound) == (4, 3, True)
    state.resize(np.int64(5))
    assert type(state.capacity) is int and state.capacity == 5


def test_a_capacity_that_no_memory_holds_is_refused_at_the_call() -> None:
    """The batch is open too: what is counted of it is 1."""
    wide = attention()
    for value in (*wide.graph.input, *wide.graph.output):
        if value.name != "mask":
            value.type.tensor_type.shape.dim[3].dim_value = 1 << 20
    session = lb.Session(lb.compile(wide, alias=STATES))
    with pytest.raises(lb.OutOfMemoryError, match=f"a state of {LARGEST} steps needs .* give it a smaller capacity"):
        session.bind_state(capacity=LARGEST)
    assert session.bind_state(capacity=2).capacity == 2


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        ({"nk": ["pk"], "nv": "pv"}, r"there is no input \['pk'\]"),
        ({0: 1}, "there is no output 0"),
        ({None: "pk"}, "there is no output None"),
        ({"nk": "pk", "nv": "pk"}, "two outputs would be the next value of input 'pk'"),
        ({"nk": "k"}, "the two halves of a state must be equal"),
    ],
)
def test_pairs_that_do_not_exist_are_refused_and_bind_nothing(grown: lb.Executable, pairs: Any, why: str) -> None:
    session = lb.Session(grown)
    with pytest.raises(lb.InputError, match=why):
        session.bind_state(pairs, capacity=4)
    assert session.bind_state(capacity=4).pairs == STATES


def two_states() -> lb.Session:
    sums = recurrent()
    sums.graph.node.append(helper.make_node("Mul", ["x", "c"], ["cn"]))
    for side, name in ((sums.graph.input, "c"), (sums.graph.output, "cn")):
        value = side.add()
        value.CopyFrom(sums.graph.input[0])
        value.name = name
    return lb.Session(lb.compile(sums))


def test_a_state_of_which_a_part_cannot_be_allocated_binds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of the second one fails: the first is an input like others, with what was bound to it."""
    session = two_states()
    x, h, c = (np.full((2, 3), number, np.float32) for number in (1, 2, 3))
    for name, value in (("x", x), ("h", h), ("c", c)):
        session.set_input_zero_copy(name, value)
    allocate = RunArguments.allocate

    def failing(self: RunArguments, slot: Any, spec: Any) -> Any:
        if spec.name.startswith("c"):
            raise lb.OutOfMemoryError("no bytes are left")
        return allocate(self, slot, spec)

    with monkeypatch.context() as patch:
        patch.setattr(RunArguments, "allocate", failing)
        with pytest.raises(lb.OutOfMemoryError):
            session.bind_state()
    session.run()
    h += 1  # it is bound in place, as before
    session.run()
    np.testing.assert_array_equal(np.asarray(session.get_output("hn")), 4 * np.ones((2, 3)))
    state = session.bind_state()
    assert state.pairs == {"hn": "h", "cn": "c"}
    session.run()
    np.testing.assert_array_equal(np.asarray(state.tensors["h"]), x)  # it begins as zeros


@pytest.mark.parametrize("path", [3, None, True, b"a.state", [], 1.5, object()])
def test_what_is_no_path_is_refused(grown: lb.Executable, path: Any) -> None:
    session = lb.Session(grown)
    state = session.bind_state(capacity=4)
    session(feeds_of(np.random.default_rng(1), 2, 3, 0))
    before = {name: np.array(tensor) for name, tensor in state.tensors.items()}
    for method in (state.save, state.load):
        with pytest.raises(
            lb.InputError, match=f"{method.__name__} takes the path of a file, not {type(path).__name__}"
        ):
            method(path)
    assert state.length == 3
    for name, tensor in state.tensors.items():
        np.testing.assert_array_equal(np.asarray(tensor), before[name])


def test_a_state_of_another_model_or_dtype_is_refused(tmp_path: Path) -> None:
    half = recurrent()
    for value in (*half.graph.input, *half.graph.output):
        value.type.tensor_type.elem_type = 10
    states = {}
    for name, written in (("float", recurrent()), ("half", half)):
        session = lb.Session(lb.compile(written))
        states[name] = session.bind_state()
        states[name].save(tmp_path / name)
    with pytest.raises(lb.InputError, match=r"holds the states \{'h': 'float16'\}; those of this program are .*32"):
        states["float"].load(tmp_path / "half")
    grows = lb.Session(lb.compile(attention(), alias=STATES)).bind_state(capacity=3)
    with pytest.raises(lb.InputError, match="is a state of model 'g', this is 'layer'; run that model to continue it"):
        grows.load(tmp_path / "float")
    assert grows.length == 0
    with pytest.raises(lb.InputError, match="values are given as"):
        grows.assign(states["float"].tensors, 1)


def test_values_that_are_no_arrays_are_refused(grown: lb.Executable) -> None:
    session = lb.Session(grown)
    state = session.bind_state(capacity=4)
    session(feeds_of(np.random.default_rng(1), 2, 3, 0))
    before = {name: np.array(tensor) for name, tensor in state.tensors.items()}
    good = np.zeros((2, 2, 3, 4), np.float32)
    for bad in ([[1], [1, 2]], None, object(), "text", [["a"]], 3, good.astype(">f4"), good.astype(complex)):
        with pytest.raises(lb.LandbridgeError):
            state.assign({"pk": good, "pv": bad}, 3)
        assert state.length == 3
        for name, tensor in state.tensors.items():
            np.testing.assert_array_equal(np.asarray(tensor), before[name])


def test_steps_that_lie_in_the_state_itself_are_refused(grown: lb.Executable) -> None:
    """The oldest step is dropped, from a copy."""
    session = lb.Session(grown)
    state = session.bind_state(capacity=4)
    session(feeds_of(np.random.default_rng(1), 2, 3, 0))
    before = {name: np.array(tensor) for name, tensor in state.tensors.items()}
    later = {name: np.asarray(tensor)[:, :, 1:3] for name, tensor in state.tensors.items()}
    for values in (later, state.tensors):
        with pytest.raises(lb.InputError, match="lies in memory of the state itself; give a copy"):
            state.assign(values, 2)
    state.assign({name: np.array(value) for name, value in later.items()}, 2)
    assert state.length == 2
    for name, tensor in state.tensors.items():
        np.testing.assert_array_equal(np.asarray(tensor)[:, :, :2], before[name][:, :, 1:3])
