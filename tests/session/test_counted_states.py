"""A state that counts the steps of another, as the StaticCache of transformers does: it has the length at all times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import landbridge as lb

CAPACITY = 8
MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
cache (float[S, 3] x, float[8, 3] past, int64 seen) => (float[8, 3] present, int64 new_seen)
<int64 zero = {0}, int64 one = {1}, int64[1] last = {1}, int64[S] places, int64[S, 1] at>
{
    steps = Shape <start = 0, end = 1> (x)
    count = Squeeze (steps)
    r = Range (zero, count, one)
    places = Add (r, seen)
    at = Unsqueeze (places, last)
    present = ScatterND (past, at, x)
    new_seen = Add (seen, count)
}
"""


class History:
    """A Session, and what numpy has of a state."""

    def __init__(self) -> None:
        self.session = lb.Session(lb.compile(onnx.parser.parse_model(MODEL), alias="auto"))
        self.rng = np.random.default_rng(4)

    def step(self, state: lb.State, rows: list[list[float]], steps: int) -> None:
        new = self.rng.random((steps, 3), np.float32)
        self.session(new)
        rows += new.tolist()
        self.check(state, rows)

    def check(self, state: lb.State, rows: list[list[float]]) -> None:
        assert state.length == len(rows) == int(np.asarray(state.tensors["seen"]))
        assert np.asarray(state.tensors["past"])[: len(rows)].tolist() == rows


def test_the_count_follows_the_length(tmp_path: Path) -> None:
    history, rows = History(), []  # type: tuple[History, list[list[float]]]
    state = history.session.bind_state()
    assert (state.length, state.capacity) == (0, CAPACITY)
    history.step(state, rows, 3)
    history.step(state, rows, 1)
    state.rewind(2)
    del rows[2:]
    history.check(state, rows)
    history.step(state, rows, 1)
    forked, other = state.fork(), list(rows)
    history.step(state, rows, 2)
    forked.bind()
    history.step(forked, other, 1)
    forked.save(tmp_path / "state")
    state.load(tmp_path / "state")
    history.check(state, other)
    state.assign({"past": np.array(rows, np.float32)}, length=len(rows))
    history.check(state, rows)
    state.bind()
    history.step(state, rows, 1)
    state.reset()
    history.check(state, [])


def test_a_step_that_does_not_fit_changes_nothing() -> None:
    history, rows = History(), []  # type: tuple[History, list[list[float]]]
    state = history.session.bind_state()
    history.step(state, rows, 6)
    with pytest.raises(lb.StateCapacityError, match="needs 9 steps"):
        history.session(np.ones((3, 3), np.float32))
    history.step(state, rows, 2)


def test_a_run_that_fails_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel that counts may have run."""
    history, rows = History(), []  # type: tuple[History, list[list[float]]]
    state = history.session.bind_state()
    history.step(state, rows, 2)
    group = state._group
    with monkeypatch.context() as patched:
        patched.setattr(group, "commit", lambda: pytest.fail("interrupted"))
        with pytest.raises(pytest.fail.Exception):
            history.session(np.ones((1, 3), np.float32))
    assert state.length == 2
    history.step(state, rows, 1)


def test_the_state_gives_the_count() -> None:
    history = History()
    state = history.session.bind_state()
    with pytest.raises(lb.InputError, match=r"'seen' is the length of the state, which gives it; use state.rewind"):
        history.session.set_input("seen", np.array(3))
    with pytest.raises(lb.InputError, match=r"legal: a dict by the names of the inputs, \['past'\]"):
        state.assign({"past": np.zeros((1, 3), np.float32), "seen": np.array(1)}, length=1)


def test_memory_of_the_application_is_counted_from_its_length() -> None:
    history = History()
    past = np.arange(3 * CAPACITY, dtype=np.float32).reshape(CAPACITY, 3)
    aliased = dict(lb.compile(onnx.parser.parse_model(MODEL), alias="auto").main.aliases)
    counts = np.array(7) if "new_seen" in aliased else (np.array(7), np.array(7))
    state = history.session.bind_state(memory={"past": past, "seen": counts}, length=5)
    history.step(state, past[:5].tolist(), 2)
