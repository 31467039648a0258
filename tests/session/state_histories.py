"""Histories of states, on any device: whatever is done with however many, each has what numpy has.

The layers are those of ``tests/frontend/test_retained_buffers.py``, whose caches grow by any number of steps, and a
GroupQueryAttention of a fixed number of steps in buffers of a fixed capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import landbridge as lb
from tests.frontend.test_retained_buffers import Numpy, feeds_of

Array = np.ndarray[Any, Any]
Feeds = dict[str, Array]

BATCH = 2


class Layer(Protocol):
    """What numpy has of a layer and its caches, which end where they are set back to."""

    keys: Array
    values: Array

    def step(self, feeds: Feeds) -> Array: ...

    def set_back(self, length: int) -> None: ...


@dataclass(frozen=True)
class Form:
    """A layer, and what a run of so many steps behind a length is given. ``steps``: those of each run; None: any.
    ``capacity``: that of the program; None: that of each state.
    """

    layer: Callable[[], Layer]
    feeds: Callable[[np.random.Generator, int, int], Feeds]
    steps: int | None = None
    capacity: int | None = None


GROWN = Form(lambda: Numpy(BATCH), lambda rng, steps, length: feeds_of(rng, BATCH, steps, length))

HEADS, SHARED, SIZE, STEPS, CAPACITY = 4, 2, 8, 2, 9


def grouped() -> ModelProto:
    """GroupQueryAttention of so many steps a run, in buffers of a capacity; what is filled is a value of the run."""
    cache = (BATCH, SHARED, CAPACITY, SIZE)
    new = (BATCH, STEPS, SHARED * SIZE)
    shapes = {"q": (BATCH, STEPS, HEADS * SIZE), "k": new, "v": new, "pk": cache, "pv": cache}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    inputs += [helper.make_tensor_value_info(n, TensorProto.INT32, s) for n, s in (("ends", (BATCH,)), ("total", (1,)))]
    results = {"y": shapes["q"], "nk": cache, "nv": cache}
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in results.items()]
    heads = {"num_heads": HEADS, "kv_num_heads": SHARED}
    node = helper.make_node(
        "GroupQueryAttention", [i.name for i in inputs], list(results), domain="com.microsoft", **heads
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], "g", inputs, outputs), opset_imports=opsets, ir_version=10)


class Grouped:
    """What ``grouped`` computes, causal."""

    def __init__(self) -> None:
        self.keys = self.values = np.zeros((BATCH, SHARED, 0, SIZE), np.float32)

    def step(self, feeds: Feeds) -> Array:
        new = (feeds[name].reshape(BATCH, STEPS, SHARED, SIZE).transpose(0, 2, 1, 3) for name in "kv")
        self.keys, self.values = (np.concatenate(each, 2) for each in zip((self.keys, self.values), new, strict=True))
        queries = feeds["q"].reshape(BATCH, STEPS, SHARED, HEADS // SHARED, SIZE).transpose(0, 2, 3, 1, 4)
        scores = np.einsum("bhgsd,bhtd->bhgst", queries, self.keys) / np.sqrt(SIZE)
        end = self.keys.shape[2]
        later = np.arange(end) > end - STEPS + np.arange(STEPS)[:, None]
        weights = np.exp(np.where(later, -np.inf, scores))
        weights /= weights.sum(-1, keepdims=True)
        return np.einsum("bhgst,bhtd->bshgd", weights, self.values).reshape(BATCH, STEPS, HEADS * SIZE)

    def set_back(self, length: int) -> None:
        self.keys, self.values = self.keys[:, :, :length], self.values[:, :, :length]


def feeds_of_grouped(rng: np.random.Generator, steps: int, length: int) -> Feeds:
    widths = {"q": HEADS, "k": SHARED, "v": SHARED}
    drawn = {name: rng.standard_normal((BATCH, steps, n * SIZE)).astype(np.float32) for name, n in widths.items()}
    ends = np.full(BATCH, length + steps - 1, np.int32)
    return {**drawn, "ends": ends, "total": np.array([length + steps], np.int32)}


GROUPED = Form(Grouped, feeds_of_grouped, STEPS, CAPACITY)


def read(tensor: lb.Tensor) -> Array:
    """The values of a Tensor of any device."""
    return np.asarray(tensor.to_device("cpu"))


class History:
    """A Session on ``device``, and what numpy has of each of its states."""

    def __init__(self, session: lb.Session, seed: int = 4, form: Form = GROWN, device: str = "cpu") -> None:
        self.session, self.rng, self.form, self.device = session, np.random.default_rng(seed), form, device
        self.expected: dict[lb.State, Layer] = {}

    def new(self, capacity: int | None = None, **options: Any) -> lb.State:
        state = self.session.bind_state(capacity=capacity or self.form.capacity, **options)
        self.expected[state] = self.form.layer()
        return state

    def given(self, memory: dict[str, Any]) -> lb.State:
        """A state in ``memory`` of the application."""
        state = self.session.bind_state(memory=memory)
        self.expected[state] = self.form.layer()
        return state

    def feeds(self, steps: int, length: int) -> Feeds:
        return self.form.feeds(self.rng, steps, length)

    def step(self, state: lb.State, steps: int | None = None, *, by_call: bool = False) -> None:
        """A run of ``steps`` more, whose result and whose caches are those of numpy.

        On a device no byte is copied, but for the length that a run which is no call is given.
        """
        before, steps = state.length or 0, steps or self.form.steps or 1
        feeds = self.feeds(steps, before)
        on_host = self.device == "cpu"
        given: dict[str, Any] = feeds if on_host else {n: lb.asarray(v, device=self.device) for n, v in feeds.items()}
        with nullcontext() if on_host or not by_call else lb.no_copies(), lb.ledger() as moves:
            if by_call:
                result = self.session(given)["y"]
            else:
                for name, value in given.items():
                    (self.session.set_input if on_host else self.session.set_input_zero_copy)(name, value)
                self.session.run()
                result = self.session.get_output("y")
        assert on_host or not [move for move in moves if move.nbytes > 8 and not move.is_kernel]
        within = {"rtol": 1e-5, "atol": 1e-6} if on_host else {"rtol": 1e-4, "atol": 1e-5}
        np.testing.assert_allclose(read(result), self.expected[state].step(feeds), **within)
        assert state.length == before + steps
        self.check(state)

    def check(self, state: lb.State) -> None:
        """The state holds what numpy does, up to its length."""
        expected = self.expected[state]
        for name, values in (("pk", expected.keys), ("pv", expected.values)) if state.length else ():
            np.testing.assert_array_equal(read(state.tensors[name])[:, :, : state.length], values)

    def rewind(self, state: lb.State, length: int) -> None:
        state.rewind(length)
        self.expected[state].set_back(length)

    def reset(self, state: lb.State) -> None:
        state.reset()
        self.expected[state].set_back(0)

    def fork(self, state: lb.State) -> lb.State:
        forked, before = state.fork(), self.expected[state]
        self.expected[forked] = copied = self.form.layer()
        copied.keys, copied.values = before.keys.copy(), before.values.copy()
        return forked

    def resize(self, state: lb.State) -> None:
        """To any capacity, or to the one of the program, and to no other."""
        if self.form.capacity is None:
            state.resize(max(state.length or 0, int(self.rng.integers(1, 12))))
            return
        state.resize(self.form.capacity)
        with pytest.raises(lb.InputError, match=f"the program was compiled with {self.form.capacity} steps"):
            state.resize(self.form.capacity + 1)


#: What is done with a state, or makes one.
ACTIONS = ("append", "append", "append", "rewind", "fork", "reset", "resize", "new")


def walk(
    history: History,
    count: int,
    *,
    new: Callable[[], lb.State] | None = None,
    actions: Sequence[str] = ACTIONS,
    most: int = 4,
) -> None:
    """Do ``count`` actions with at most so many states, and compare all of them after each. ``new`` makes one."""
    rng, form = history.rng, history.form
    create = new or (lambda: history.new(form.capacity or int(rng.integers(1, 9))))
    states = [create()]
    for _ in range(count):
        state = states[int(rng.integers(len(states)))]
        length, left = state.length or 0, (state.capacity or 0) - (state.length or 0)
        match rng.choice(actions):
            case "append" if left >= (form.steps or 1):
                state.bind()
                steps = form.steps or int(rng.integers(1, left + 1))
                history.step(state, steps, by_call=bool(rng.integers(2)))
            case "append":
                state.bind()
                with pytest.raises(lb.StateCapacityError):
                    history.session(history.feeds(form.steps or 1, length))
            case "rewind":
                history.rewind(state, int(rng.integers(length + 1)))
            case "reset":
                history.reset(state)
            case "resize":
                history.resize(state)
            case "fork" if len(states) < most:
                states.append(history.fork(state))
            case "new" if len(states) < most:
                states.append(create())
        for each in states:
            history.check(each)
