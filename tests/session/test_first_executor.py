"""A first program is replaced between two runs: with all that is bound, and never while it runs.

The stand-ins of one interface differ in their factor, so that results say which of them ran.
"""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.errors import FallbackWarning, InputError
from landbridge.reporting.warning_notes import warn
from landbridge.session.first_executor import FirstExecutor
from tests.session.interrupts import interrupted

SHAPE = (2, 3)
#: Instructions between two places of an interrupt: a prime, so that loops are interrupted in different places.
STEP = 211


def program(factor: float, shape: tuple[int, ...] = SHAPE, alias: Mapping[str, str] | None = None) -> lb.Executable:
    """``y = factor * x`` and ``h_out = h_in + x``."""
    values = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "h_in", "y", "h_out")
    }
    nodes = [helper.make_node("Mul", ["x", "factor"], ["y"]), helper.make_node("Add", ["h_in", "x"], ["h_out"])]
    graph = helper.make_graph(
        nodes,
        "scaled",
        [values["x"], values["h_in"]],
        [values["y"], values["h_out"]],
        [numpy_helper.from_array(np.array(factor, np.float32), "factor")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return lb.compile(model, alias=alias)


class StandIn:
    """A PendingProgram that is there when the test says so."""

    def __init__(self) -> None:
        self.program: lb.Executable | None = None
        self.declined: list[str] = []
        self.asked: Callable[[], object] = lambda: None

    def take(self) -> lb.Executable | None:
        self.asked()
        return None if self.declined else self.program

    def decline(self, reason: str) -> None:
        self.declined.append(reason)
        warn(reason, FallbackWarning)


@pytest.fixture
def coming() -> StandIn:
    return StandIn()


@pytest.fixture
def session(coming: StandIn) -> lb.Session:
    return lb.Session(replace(program(2), replacement=coming))


X, H = np.arange(6, dtype=np.float32).reshape(SHAPE) + 1, np.full(SHAPE, 0.5, np.float32)


def factor_of(session: lb.Session) -> float:
    """Which program runs."""
    session.run()
    return float(np.asarray(session.get_output("y")).flat[0] / np.asarray(session.get_input("x")).flat[0])


def test_the_first_run_after_it_is_there_takes_it(session: lb.Session, coming: StandIn) -> None:
    session.set_input("x", X)
    session.set_input("h_in", H)
    assert factor_of(session) == factor_of(session) == 2
    coming.program = program(10)
    assert np.asarray(session.get_output("y")).tolist() == (2 * X).tolist()  # the last run's, until the next one
    assert factor_of(session) == 10 and session.executable is coming.program
    coming.asked = lambda: pytest.fail("the replacement is looked for after it was taken")
    assert factor_of(session) == 10


def test_memory_that_is_bound_stays_bound(session: lb.Session, coming: StandIn) -> None:
    x, y = X.copy(), np.zeros(SHAPE, np.float32)
    session.set_input_zero_copy("x", x)
    session.set_output_zero_copy("y", y)
    session.set_input("h_in", H)
    owned = session.get_input("h_in")
    session.run()
    results = session.get_output("h_out")
    coming.program = program(10)
    x += 1
    with owned.host_view("w") as view:
        view[...] = 7
    session.run()
    assert y.tolist() == (10 * (X + 1)).tolist()
    assert np.asarray(results).tolist() == (X + 1 + 7).tolist() and session.get_output("h_out") is results
    assert session.get_input("h_in") is owned


def test_borrowed_memory_is_released_with_its_next_binding(session: lb.Session, coming: StandIn) -> None:
    x = X.copy()
    gone = weakref.ref(x)
    session.set_input_zero_copy("x", x)
    session.set_input("h_in", H)
    session.run()
    coming.program = program(10)
    session.run()
    del x
    session.set_input("x", X)
    gc.collect()
    assert gone() is None and factor_of(session) == 10


def test_inputs_without_a_binding_are_still_named(session: lb.Session, coming: StandIn) -> None:
    session.set_input("x", X)
    coming.program = program(10)
    with pytest.raises(InputError, match="h_in"):
        session.run()
    session.set_input("h_in", H)
    assert factor_of(session) == 10


def test_states_continue(session: lb.Session, coming: StandIn) -> None:
    session.set_input("x", X)
    session.bind_state("h_out", "h_in")
    session.set_input("h_in", H)
    for _ in range(3):  # an odd number: the buffers are swapped
        session.run()
    coming.program = program(10)
    for _ in range(2):
        session.run()
    assert np.asarray(session.get_output("h_out")).tolist() == (H + 5 * X).tolist()
    y, h = session(X)[:1], session.get_output("h_out")
    assert np.asarray(y[0]).tolist() == (10 * X).tolist() and np.asarray(h).tolist() == (H + 6 * X).tolist()


def test_states_continue_in_a_program_with_more_aliases(session: lb.Session, coming: StandIn) -> None:
    session.bind_state({"h_out": "h_in"})
    session.set_input("x", X)
    session.run()
    full = program(10, alias={"h_out": "h_in"})
    assert full.main.aliases and not session.executable.main.aliases
    coming.program = full
    for count in (2, 3, 4):
        session.run()
        assert np.array_equal(np.asarray(session.get_output("h_out")), count * X)
    assert session.executable is full and not coming.declined


def test_a_state_object_continues(session: lb.Session, coming: StandIn) -> None:
    session.set_input("x", X)
    state = session.bind_state({"h_out": "h_in"})
    assert factor_of(session) == 2
    coming.program = program(10)
    assert factor_of(session) == 10
    assert np.asarray(session.get_output("h_out")).tolist() == (2 * X).tolist()
    state.reset()
    session.run()
    assert np.asarray(session.get_output("h_out")).tolist() == X.tolist()


def test_calls(session: lb.Session, coming: StandIn) -> None:
    assert np.asarray(session(X, H)[0]).tolist() == (2 * X).tolist()
    coming.program = program(10)
    outs = [np.zeros(SHAPE, np.float32) for _ in range(2)]
    session(X, H, out=outs)
    assert outs[0].tolist() == (10 * X).tolist() and outs[1].tolist() == (X + H).tolist()
    assert np.asarray(session({"x": X, "h_in": H})["y"]).tolist() == (10 * X).tolist()


def test_a_run_under_way_is_not_disturbed(session: lb.Session, coming: StandIn) -> None:
    session.set_input("x", X)
    session.set_input("h_in", H)
    running = session.run_async()
    coming.program = program(10)
    running.wait()
    assert np.asarray(session.get_output("y")).tolist() == (2 * X).tolist()
    session.run_async().wait()
    assert np.asarray(session.get_output("y")).tolist() == (10 * X).tolist()


def test_calls_of_many_threads_use_one_program_or_the_other(session: lb.Session, coming: StandIn) -> None:
    found: list[Any] = []

    def work() -> None:
        for number in range(50):
            if number == 20:
                coming.program = made
            found.append(np.asarray(session(X, H)[0]).flat[0])

    made = program(10)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 150 and set(found) <= {2.0, 10.0} and found[-1] == 10
    assert factor_of_call(session) == 10


def factor_of_call(session: lb.Session) -> float:
    return float(np.asarray(session(X, H)[0]).flat[0])


def test_an_interrupt_leaves_one_of_them(coming: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an interrupt at any place of the exchange, a Session runs with what is bound to it."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # finalizers are interrupted, too
    first, full, x = program(2), program(10), X.copy()
    used: list[lb.Session] = []

    def begin() -> None:
        coming.program = None
        used[:] = [lb.Session(replace(first, replacement=coming))]
        used[0].set_input_zero_copy("x", x)
        used[0].set_input("h_in", H)
        used[0].run()
        coming.program = full

    begin()
    hit = 0
    for was_interrupted in interrupted(lambda: used[0].run(), STEP):
        hit += was_interrupted
        session, y = used[0], np.zeros(SHAPE, np.float32)
        session.set_output_zero_copy("y", y)
        x += 1
        session.set_input_zero_copy("x", x)
        session.run()
        assert y.tolist() == (10 * x).tolist() and session.executable is full
        begin()
    assert hit > 20


def test_one_that_does_not_fit_is_declined_once(session: lb.Session, coming: StandIn) -> None:
    session.set_input("x", X)
    session.set_input("h_in", H)
    coming.program = program(10, (3, 2))
    with pytest.warns(FallbackWarning, match="inputs are"):
        assert factor_of(session) == 2
    assert factor_of(session) == 2 and len(coming.declined) == 1


def test_a_session_that_is_gone_is_freed(coming: StandIn) -> None:
    session = lb.Session(replace(program(2), replacement=coming))
    executor = weakref.ref(session._executor)
    assert isinstance(executor(), FirstExecutor)
    gc.disable()
    try:
        del session
        assert executor() is None
    finally:
        gc.enable()


def test_neither_files_nor_pickles_have_it(coming: StandIn, tmp_path: Any) -> None:
    first = replace(program(2), replacement=coming)
    assert pickle.loads(pickle.dumps(first)).replacement is None
    first.save(tmp_path / "first.lbx")
    assert lb.load(tmp_path / "first.lbx").replacement is None
