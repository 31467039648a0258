"""run_async: the handle, what stays refused and alive meanwhile, and what waits for the run by itself."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import numpy as np
import pytest

import landbridge as lb
from landbridge.errors import HostAccessError, InputError, LandbridgeError, RunTimeoutError, SessionBusyError
from landbridge.executable.instructions import Call, HostCall
from landbridge.vm.builtins import register_builtin
from tests.session.place import empty, session, where  # noqa: F401
from tests.vm import programs

WEIGHTS = np.arange(64, dtype=np.float32)


class Gate:
    """A host builtin that copies once it is let through, so that a test decides how long a run takes."""

    def __init__(self) -> None:
        self.entered, self.open = threading.Event(), threading.Event()
        self.error: Exception | None = None

    def __call__(self, args, attributes) -> None:
        self.entered.set()
        assert self.open.wait(30)
        if self.error:
            raise self.error
        args[1][:] = args[0]

    def start(self, s: lb.Session):
        run = s.run_async()
        assert self.entered.wait(30)
        return run


@pytest.fixture
def gate(request):
    gate = Gate()
    register_builtin(f"test.gate.{request.node.name}", gate)
    yield gate
    gate.open.set()


@pytest.fixture
def gated(gate, request):
    """A Session whose output is its input, once the gate is open."""
    program = (HostCall(f"test.gate.{request.node.name}", (0, 1), {}),)
    return session(programs.executable({"x": (4,)}, {"y": (4,)}, program))


def ones() -> np.ndarray:
    return np.ones(4, np.float32)


def test_it_gives_what_run_gives():
    for threads in (1, 2):
        n = 1 << 13  # enough to be worth sharing
        s, x = session(programs.add_weights(n), num_threads=threads), np.ones(n, np.float32)
        s.set_input_zero_copy("x", x)
        for step in range(50):
            x[:] = step
            run = s.run_async()
            run.wait()
            assert run.done() and run.wait(0) is None
            assert np.array_equal(np.asarray(s.get_output(0)), step + np.arange(n, dtype=np.float32))


def test_everything_else_is_refused_until_it_is_over(gated, gate):
    gated.set_input("x", ones())
    run = gate.start(gated)
    assert not run.done() and "in flight" in repr(run)
    for call in (
        gated.run,
        gated.run_async,
        lambda: gated(ones()),
        lambda: gated.set_input("x", ones()),
        lambda: gated.set_input_zero_copy("x", ones()),
        lambda: gated.get_output(0),
        lambda: gated.get_input("x"),
        lambda: gated.set_output_zero_copy(0, ones()),
        lambda: gated.bind_state(0, 0),
        lambda: gated.set_params({}),
        gated.get_params,
    ):
        with pytest.raises(SessionBusyError, match="run_async"):
            call()
    gate.open.set()
    run.wait(30)
    assert np.array_equal(np.asarray(gated.get_output(0)), ones())
    gated.run()


def test_a_timeout_leaves_it_running(gated, gate):
    gated.set_input("x", ones())
    run = gate.start(gated)
    began = time.monotonic()
    with pytest.raises(RunTimeoutError, match=r"not over after 0.05 s") as raised:
        run.wait(0.05)
    assert time.monotonic() - began < 10
    assert isinstance(raised.value, TimeoutError) and isinstance(raised.value, LandbridgeError)
    with pytest.raises(RunTimeoutError):
        run.wait(0)
    with pytest.raises(InputError, match="seconds from 0"):
        run.wait(-1)
    with pytest.raises(InputError, match="seconds from 0"):
        run.wait(float("nan"))
    gate.open.set()
    run.wait(30)


def test_by_value_input_is_the_callers_again_at_once(gated, gate):
    x = ones()
    gated.set_input("x", x)
    run = gate.start(gated)
    x[:] = -1
    gate.open.set()
    run.wait(30)
    assert np.array_equal(np.asarray(gated.get_output(0)), ones())


def test_everything_borrowed_lives_until_it_is_over(gate, request):
    program = (HostCall(f"test.gate.{request.node.name}", (0, 1), {}),)
    s = session(programs.executable({"x": (4,)}, {"y": (4,)}, program))
    x, y = ones(), np.zeros(4, np.float32)
    s.set_input_zero_copy("x", x)
    s.set_output_zero_copy(0, y)
    run = gate.start(s)
    gone = weakref.ref(x), weakref.ref(y), weakref.ref(s)
    seen, y = y.view(), None
    del x, s
    gc.collect()
    assert gone[0]() is not None and gone[2]() is not None
    gate.open.set()
    run.wait(30)
    assert np.array_equal(seen, ones())
    del seen
    deadline = time.monotonic() + 20
    while any(r() is not None for r in gone) and time.monotonic() < deadline:
        time.sleep(0.01)  # the worker lets go just after it says that the run is over
        gc.collect()
    assert [r() for r in gone] == [None] * 3


def test_an_exception_comes_from_wait_and_the_session_goes_on(gated, gate):
    gated.set_input("x", ones())
    gate.error = ValueError("no")
    run = gate.start(gated)
    gate.open.set()
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            run.wait(30)
    gate.error = None
    gated.run_async().wait(30)


def test_what_run_refuses_it_refuses_before_it_starts(gated):
    with pytest.raises(InputError, match="nothing is bound to input 'x'"):
        gated.run_async()
    with gated.get_input("x").host_view("rw"), pytest.raises(HostAccessError, match="input 'x'"):
        gated.run_async()
    gated.set_input("x", ones())


@pytest.mark.parametrize("mode", ["r", "rw", "asarray"])
def test_a_view_of_an_output_waits_for_the_run(gated, gate, mode):
    y = empty((4,))
    with y.host_view("w") as view:
        view[:] = 0
    gated.set_input("x", ones())
    gated.set_output_zero_copy(0, y)
    run = gate.start(gated)
    threading.Timer(0.1, gate.open.set).start()
    if mode == "asarray":
        assert np.array_equal(np.asarray(y), ones())
    else:
        with y.host_view(mode) as view:
            assert np.array_equal(view, ones())
    assert run.done()


def test_writing_an_input_waits_for_the_run_and_reading_it_does_not(gated, gate):
    x = empty((4,))
    with x.host_view("w") as view:
        view[:] = 1
    gated.set_input_zero_copy("x", x)
    run = gate.start(gated)
    with x.host_view("r"):
        assert not run.done()
    threading.Timer(0.1, gate.open.set).start()
    with x.host_view("w"):
        assert run.done()


def test_state_swaps_and_the_ledger_sees_it():
    s = session(programs.recurrent())
    s.bind_state("h_out", "h_in")
    s.set_input_zero_copy("x", ones())
    for step in range(1, 4):
        s.run_async().wait()
        assert np.array_equal(np.asarray(s.get_output("h_out")), np.full(4, step))
    s = session(programs.moves_data())
    s.set_input("x", np.ones(64, np.float32))
    with lb.ledger() as moves:
        s.run_async().wait()
    assert [(m.cause, m.nbytes) for m in moves] == [("kernel:reorder", 256)]


def test_native_runs_of_two_sessions_overlap():
    n = 1 << 16
    calls = tuple(Call(0, "expm1", (0, 1), n) for _ in range(400))
    sessions = [session(programs.executable({"x": (n,)}, {"y": (n,)}, calls)) for _ in range(2)]
    for s in sessions:
        s.set_input("x", np.zeros(n, np.float32))
    runs = [s.run_async() for s in sessions]
    assert not any(run.done() for run in runs)  # both were started before one was over
    for run in runs:
        run.wait(60)


def test_a_worker_ends_with_its_session():
    s = session(programs.add_weights())
    s.set_input("x", WEIGHTS)
    s.run_async().wait()
    name = f"{s!r} run_async"
    before = sum(t.name == name for t in threading.enumerate())
    del s
    deadline = time.monotonic() + 20
    while (left := sum(t.name == name for t in threading.enumerate())) == before and time.monotonic() < deadline:
        time.sleep(0.01)
        gc.collect()
    assert left < before
