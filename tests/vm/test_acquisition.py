"""Scopes that come and go: acquired for each run, loaded again when they were lost, refused by name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnxruntime
import pytest

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import BindError, ScopeBusyError
from landbridge.executable.parts import VDevice
from landbridge.targets import Target
from landbridge.testing.sim_on_demand import SimOnDemandDeviceAPI
from tests.passes.place.scopes import SHAPE, network

X = np.random.default_rng(1).standard_normal(SHAPE, dtype=np.float32)
#: As of placed programs: outputs below 1, of sums of 144 terms.
TOLERANCE = 20 * np.finfo(np.float32).eps
FLAT, ROWS = "global.scratch", "global.vtcm"
PLACES = {"w1": f"npu@{FLAT}", "relu": f"npu@{FLAT}", "w2": f"npu@{ROWS}[1]", "conv2": f"npu@{ROWS}[2]"}


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    session = onnxruntime.InferenceSession(network().SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": X})[0]


@pytest.fixture(scope="module")
def executable() -> lb.Executable:
    target = Target.from_device(Device(SimOnDemandDeviceAPI(), 0), "llvm")
    return lb.compile(network(), {"npu": target}, place=PLACES)


@pytest.fixture
def api() -> Iterator[SimOnDemandDeviceAPI]:
    made = SimOnDemandDeviceAPI()
    yield made
    assert not made.violations
    assert not any(made.acquired.values())


def session_on(api: SimOnDemandDeviceAPI, executable: lb.Executable) -> lb.Session:
    session = lb.Session(executable, device=Device(api, 0))
    session.set_input("x", X)
    return session


def loads(session: lb.Session) -> int:
    """How many weights a run loads."""
    with lb.ledger() as moves:
        session.run()
    return [move.cause for move in moves].count("constants:acquire")


def result(session: lb.Session) -> np.ndarray:
    with session.get_output(0).host_view("r") as y:
        return np.array(y)


def test_what_is_retained_is_not_loaded_again(api, executable, expected):
    session = session_on(api, executable)
    assert [loads(session) for _ in range(3)] == [2, 0, 0]
    assert np.abs(result(session) - expected).max() <= TOLERANCE


@pytest.mark.parametrize("scope", [FLAT, ROWS])
def test_weights_are_loaded_again_when_their_scope_was_lost(api, executable, expected, scope):
    session = session_on(api, executable)
    session.run()
    api.take(scope, "a camera")
    api.leave(scope)
    assert loads(session) == 1  # that of the other scope is there
    assert np.abs(result(session) - expected).max() <= TOLERANCE


def test_a_session_notices_a_loss_that_another_one_met_first(api, executable, expected):
    sessions = [session_on(api, executable) for _ in range(2)]
    for session in sessions:
        session.run()
    api.take(FLAT, "a camera")
    api.leave(FLAT)
    assert [loads(session) for session in sessions] == [1, 1]
    for session in sessions:
        assert np.abs(result(session) - expected).max() <= TOLERANCE


def test_calls_and_runs_share_what_was_loaded(api, executable, expected):
    session = session_on(api, executable)
    session.run()
    with lb.ledger() as moves:
        (y,) = session(X)
    assert "constants:acquire" not in {move.cause for move in moves}
    assert np.abs(np.asarray(y) - expected).max() <= TOLERANCE


def test_a_refused_scope_is_an_error_that_says_who_holds_it(api, executable, expected):
    session = session_on(api, executable)
    session.run()
    before = result(session)
    api.take(ROWS, "a camera")
    session.set_input("x", X + 1)
    with pytest.raises(ScopeBusyError, match=r"the run needs scope 'global.vtcm' .*held by a camera; run again when"):
        session.run()
    assert not any(api.acquired.values())  # the other one was given back
    assert np.array_equal(result(session), before)
    api.leave(ROWS)
    session.set_input("x", X)
    session.run()
    assert np.abs(result(session) - expected).max() <= TOLERANCE


def test_a_scope_is_given_back_when_a_run_fails(api, executable):
    session = session_on(api, executable)
    with pytest.raises(lb.CopyForbiddenError), lb.no_copies():
        session.run()  # which would load weights
    assert not any(api.acquired.values())
    assert loads(session) == 2


def test_a_session_holds_a_scope_over_many_runs(api, executable, expected):
    session = session_on(api, executable)
    with session.hold_scopes():
        assert api.acquired == {FLAT: 1, ROWS: 1}
        assert [loads(session) for _ in range(3)] == [2, 0, 0]
        with pytest.raises(ScopeBusyError, match="is acquired by this process"):
            api.take(FLAT, "a camera")
        with lb.no_copies():
            (y,) = session(lb.asarray(X))
    assert not any(api.acquired.values())
    assert np.abs(np.asarray(y) - expected).max() <= TOLERANCE
    assert loads(session) == 0  # nobody took it meanwhile


def test_what_is_held_can_be_taken_away_and_comes_again(api, executable, expected):
    session = session_on(api, executable)
    with session.hold_scopes():
        session.run()
        before = result(session)
        api.revoke(ROWS, "a camera that comes first")
        with pytest.raises(ScopeBusyError, match=r"the run needs scope 'global.vtcm' .*held by a camera that comes"):
            session.run()
        assert np.array_equal(result(session), before)
        api.leave(ROWS)
        assert [loads(session) for _ in range(2)] == [1, 0]
        assert np.abs(result(session) - expected).max() <= TOLERANCE
    assert not any(api.acquired.values())


def test_a_session_that_cannot_hold_a_scope_holds_none(api, executable):
    session = session_on(api, executable)
    api.take(ROWS, "a camera")
    with pytest.raises(ScopeBusyError, match=r"the Session needs scope 'global.vtcm' .*held by a camera"):
        session.hold_scopes().__enter__()
    assert not any(api.acquired.values())
    api.leave(ROWS)
    with session.hold_scopes(), session.hold_scopes(), pytest.raises(ZeroDivisionError):
        _ = 1 // 0
    assert not any(api.acquired.values())


def test_several_sessions_hold_a_scope_at_once(api, executable, expected):
    sessions = [session_on(api, executable) for _ in range(2)]
    with sessions[0].hold_scopes(), sessions[1].hold_scopes():
        assert [loads(session) for session in (*sessions, *sessions)] == [2, 2, 0, 0]
    for session in sessions:
        assert np.abs(result(session) - expected).max() <= TOLERANCE


def test_a_session_that_placed_nothing_there_holds_nothing():
    session = lb.Session(lb.compile(network()))
    with session.hold_scopes():
        session.set_input("x", X)
        session.run()


def test_a_session_is_made_while_others_hold_the_scope(api, executable, expected):
    api.take(FLAT, "a camera")
    session = session_on(api, executable)
    with pytest.raises(ScopeBusyError):
        session.run()
    api.leave(FLAT)
    session.run()
    assert np.abs(result(session) - expected).max() <= TOLERANCE


def test_what_depends_on_parameters_is_prepared_again(api, expected):
    target = Target.from_device(Device(api, 0), "llvm")
    exe = lb.compile(network(), {"npu": target}, place={"w1": f"npu@{FLAT}", "relu": f"npu@{ROWS}[2]"}, mutable=["w1"])
    session = session_on(api, exe)
    session.run()
    assert np.abs(result(session) - expected).max() <= TOLERANCE
    api.take(FLAT, "a camera")
    api.leave(FLAT)
    session.run()
    assert np.abs(result(session) - expected).max() <= TOLERANCE
    session.set_params({"w1": np.zeros_like(np.asarray(session.get_params()["w1"]))})
    session.run()
    assert np.abs(result(session) - 1 / (1 + np.exp(-X))).max() <= TOLERANCE


def test_inputs_and_outputs_lie_elsewhere(api):
    target = Target.from_device(Device(api, 0), "llvm")
    exe = lb.compile(network(), {"npu": target})
    vdevices = tuple(VDevice(v.name, v.target, FLAT) for v in exe.vdevices)
    with pytest.raises(BindError, match="is there during a run alone; compile the model with them in another scope"):
        lb.Session(lb.Executable(**{**vars(exe), "vdevices": vdevices}), device=Device(api, 0))
