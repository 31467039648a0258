"""Sessions with a time limit on a device that does not answer: what is raised, what stays alive, what works then."""

from __future__ import annotations

import gc
import inspect
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import DeviceLostError, ForkedDeviceError, InputError, RunTimeoutError, SessionBusyError
from landbridge.executable.instructions import HostCall
from landbridge.session import limited_session
from landbridge.session.limited_session import LimitedSession
from landbridge.vm.builtins import register_builtin
from tests.vm import programs
from tests.vm.lazy_kernels import LazyKernels, N
from tests.vm.test_overlap import two_branches

#: Seconds that uses may take which do not end in time, and that tests wait for what comes at once.
LIMIT, PATIENCE = 0.5, 30.0


class Source:
    """Where an array is from, so that a test sees when nobody uses that any more."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


def ones() -> np.ndarray[Any, Any]:
    return np.ones(N, np.float32)


@pytest.fixture(params=range(2), ids="seed {}".format)
def api(request: pytest.FixtureRequest) -> Any:
    made = LazyKernels(request.param)
    yield made
    assert made.violations == []


def session(api: LazyKernels, limit: float | None = LIMIT, kernel: str = "double") -> lb.Session:
    devices = {"cpu": "cpu", "dev": Device(api, 0)}
    return lb.Session(two_branches(kernel), devices=devices, num_threads=1, time_limit=limit)


def eventually(use: Callable[[], Any]) -> Any:
    """What ``use`` gives once the Session is no longer busy."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return use()
        except SessionBusyError:
            assert time.monotonic() < end
            time.sleep(1e-3)


USES: dict[str, Callable[[lb.Session], object]] = {
    "run": lambda s: s.run(),
    "call": lambda s: s(ones()),
    "run_async": lambda s: s.run_async().wait(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_use_ends_for_its_caller_and_is_over_when_the_device_is_done(api, use):
    s = session(api)
    s.set_input("x", ones())
    use(s)
    hold = api.hold(0)
    began = time.monotonic()
    with pytest.raises(RunTimeoutError, match=rf"{LIMIT} s \(time_limit= of the Session\)") as raised:
        use(s)
    assert LIMIT / 2 < time.monotonic() - began < PATIENCE
    assert "sim:lazy:0" in str(raised.value) and isinstance(raised.value, TimeoutError)
    for refused in (s.run, s.run_async, lambda: s(ones()), lambda: s.set_input("x", ones()), lambda: s.get_output(0)):
        with pytest.raises(SessionBusyError):
            refused()
    hold.release()
    eventually(s.run)
    assert np.array_equal(np.asarray(s.get_output("y")), 4 * ones())
    (y, z) = s(3 * ones())
    assert np.array_equal(y.numpy(), 12 * ones()) and np.array_equal(z.numpy(), 6 * ones())


def test_the_error_names_the_work_the_device_and_the_stream(api):
    s = session(api)
    s.set_input("x", ones())
    stream = Device(api, 0).create_stream()
    for on in (None, stream):
        hold = api.hold(0, on)
        with pytest.raises(RunTimeoutError) as raised:
            if on is None:
                s.run()
            else:
                with lb.set_stream(on):
                    s.run()
        output = str(raised.value)
        assert output.startswith(f"run of {s!r} is not over after {LIMIT} s") and "reopen" in output
        assert "it waits for work queued for to_vdevice on sim:lazy:0" in output
        assert ("Stream(" in output) == (on is not None)
        with pytest.raises(SessionBusyError, match=r"is not over yet: it waits for .* on sim:lazy:0"):
            s.run()
        hold.release()
        eventually(s.run)


def test_what_a_late_call_was_given_stays_alive_until_it_is_over(api):
    s = session(api)
    s(ones())
    hold = api.hold(0)
    source = Source(5 * ones())
    array, gone = np.asarray(source), weakref.ref(source)
    with pytest.raises(RunTimeoutError):
        s(array)
    del array, source
    gc.collect()
    assert gone() is not None
    dropped = weakref.ref(s)
    del s
    gc.collect()
    assert dropped() is not None and gone() is not None  # the thread that waits has both
    hold.release()
    end = time.monotonic() + PATIENCE
    while (gone() is not None or dropped() is not None) and time.monotonic() < end:
        gc.collect()
        time.sleep(1e-3)
    assert gone() is None and dropped() is None


def test_a_device_that_is_lost_ends_a_late_run(api):
    s = session(api)
    s.set_input("x", ones())
    api.hold(0)
    with pytest.raises(RunTimeoutError):
        s.run()
    api.lose(0)
    with pytest.raises(DeviceLostError, match="sim:lazy:0 is lost"):
        eventually(s.run)
    Device(api, 0).reopen()
    again = session(api)
    assert np.array_equal(again(ones())[0].numpy(), 4 * ones())


def test_copies_into_and_out_of_a_session_have_the_limit(api):
    """A copy from a device is queued, and the run that comes after it waits; one to a device is waited for at once."""
    s = session(api)
    tensor = lb.empty((N,), dtype="float32", device=Device(api, 0))
    tensor.copy_from(3 * ones())
    s.set_input("x", ones())
    s.run()
    hold = api.hold(0)
    s.set_input("x", tensor)
    with pytest.raises(RunTimeoutError, match=r"^run of .* it waits for work queued for set_input on sim:lazy:0"):
        s.run()
    hold.release()
    eventually(s.run)
    hold = api.hold(0)
    with pytest.raises(RunTimeoutError, match=r"^get_output of .* waits for work queued for get_output on sim:lazy:0"):
        s.get_output("y", tensor)
    hold.release()
    eventually(lambda: s.get_output("y", tensor))
    assert np.array_equal(tensor.to_device("cpu").numpy(), 12 * ones())


def test_a_device_method_that_does_not_return_is_named():
    class Stuck(LazyKernels):
        answers = threading.Event()

        def launch(self, *args: Any) -> Any:
            assert self.answers.wait(PATIENCE)
            return super().launch(*args)

    api = Stuck(0)
    s = session(api)
    with pytest.raises(RunTimeoutError, match="waits for sim:lazy:0 to return from launch, for a run of 1 kernels"):
        s(ones())
    api.answers.set()
    assert np.array_equal(eventually(lambda: s(ones()))[0].numpy(), 4 * ones())


def test_an_interrupt_ends_the_wait_and_not_the_use(api):
    s = session(api, PATIENCE)
    s.set_input("x", ones())
    hold = api.hold(0)
    threading.Timer(LIMIT, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        s.run()
    with pytest.raises(SessionBusyError, match=r"run of .*, whose caller waits no longer, is not over yet"):
        s.run()
    hold.release()
    eventually(s.run)
    assert np.array_equal(np.asarray(s.get_output("y")), 4 * ones())


@pytest.mark.parametrize("is_submitted", [False, True])
def test_an_interrupt_before_a_use_begins_leaves_the_session_free(api, is_submitted, monkeypatch):
    def submit(worker, task):
        if is_submitted:
            submit_to(worker, task)
        raise KeyboardInterrupt

    s, submit_to = session(api, PATIENCE), limited_session.Worker.submit
    s.set_input("x", ones())
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(limited_session.Worker, "submit", submit)
        s.run()
    eventually(s.run)
    assert np.array_equal(np.asarray(s.get_output("y")), 4 * ones())


def test_an_error_in_time_is_the_uses_own(api):
    s = session(api, PATIENCE)
    with pytest.raises(InputError, match="nothing is bound to input"):
        s.run()
    with pytest.raises(InputError, match="no input 'X'"):
        s.set_input("X", ones())
    with pytest.raises(lb.DeviceError, match="kernel fails failed on sim:lazy:0: instruction 7"):
        session(api, PATIENCE, "fails")(ones())
    s.set_input("x", ones())
    with pytest.raises(InputError, match="timeout is -1"):
        s.run_async().wait(-1)
    eventually(s.run)


class Gate:
    """A function of the host that copies once it is let through."""

    def __init__(self) -> None:
        self.open = threading.Event()

    def __call__(self, args: Any, attributes: Any) -> None:
        assert self.open.wait(PATIENCE)
        args[1][:] = args[0]


@pytest.fixture
def gate(request: pytest.FixtureRequest) -> Any:
    made = Gate()
    register_builtin(f"test.limit.{request.node.name}", made)
    yield made
    made.open.set()


def gated(request: pytest.FixtureRequest) -> lb.Executable:
    return programs.executable({"x": (N,)}, {"y": (N,)}, (HostCall(f"test.limit.{request.node.name}", (0, 1), {}),))


def test_what_the_host_computes_goes_on(gate, request):
    s = lb.Session(gated(request), num_threads=1, time_limit=LIMIT)
    x, y = ones(), np.zeros(N, np.float32)
    with pytest.raises(RunTimeoutError, match="waits for no device: it computes"):
        s(x, out=[y])
    assert not y.any()
    gate.open.set()
    eventually(s.get_params)
    assert y.all()


def test_a_pool_closes_while_runs_are_late(gate, request):
    with lb.Pool(gated(request), 2, time_limit=LIMIT) as pool:
        late = [pool.submit(ones()) for _ in range(4)]
    assert all(isinstance(each.exception(), RunTimeoutError | SessionBusyError) for each in late)
    assert sum(isinstance(each.exception(), RunTimeoutError) for each in late) >= 1


def test_many_threads_call_at_a_time(api):
    s = session(api, PATIENCE)
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda i: s(i * ones())[0].numpy(), map(np.float32, range(32))))
    assert all(np.array_equal(y, 4 * i * ones()) for i, y in enumerate(results))


OPEN = "g (float[N] x) => (float[N] y) { y = Neg(x) }"
CUT = "g (float[N] x) => (float[M] y) { c = NonZero(x)  one = Constant<value_ints=[-1]>()  r = Reshape(c, one) \
f = Cast<to=1>(r)  y = Neg(f) }"


@pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")
@pytest.mark.parametrize(("text", "expected"), [(OPEN, [-1, -1, -1]), (CUT, [0, -1, -2])], ids=["open", "cut"])
def test_programs_whose_sizes_come_have_the_limit(text, expected, monkeypatch):
    s = lb.Session(
        lb.compile(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}')), time_limit=PATIENCE
    )
    assert isinstance(s, LimitedSession)
    x = np.ones(3, np.float32)
    assert np.array_equal(s(x)[0].numpy(), expected)
    s.set_input("x", x)
    s.run_async().wait()
    assert np.array_equal(s.get_output(0).numpy(), expected)
    waits, real = threading.Event(), s._executor.run
    monkeypatch.setattr(s, "_limit", LIMIT)
    monkeypatch.setattr(s._executor, "run", lambda: (waits.wait(PATIENCE), real()))
    with pytest.raises(RunTimeoutError):
        s.run()
    waits.set()
    assert np.array_equal(eventually(lambda: s.get_output(0)).numpy(), expected)


def test_every_method_of_a_session_has_the_limit():
    public = {name for name, _ in inspect.getmembers(lb.Session) if not name.startswith("_")} | {"__call__"}
    described = {"executable", "inputs", "outputs", "params", "planned_memory"}  # which no device is asked for
    # the one calls one of two that have it, and the end of the other must not be left to another thread
    assert public - set(vars(LimitedSession)) - described == {"bind_state", "hold_scopes"}
    assert {"_bind_pair", "_bind_states"} <= set(vars(LimitedSession))


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), "1 s", True, 1e30])
def test_limits_that_are_none(limit):
    with pytest.raises(InputError, match=r"time_limit is .*; legal: None, or seconds, more than 0"):
        lb.Session(programs.add_weights(4), time_limit=limit)


def test_without_a_limit_nothing_is_done_by_another_thread():
    assert type(lb.Session(programs.add_weights(4), time_limit=None)) is lb.Session
    with pytest.raises(InputError, match=r"make a landbridge\.Session"):
        type("Mine", (lb.Session,), {})(programs.add_weights(4), time_limit=1)


def test_a_child_process_is_reported_so():
    s = lb.Session(programs.add_weights(4), num_threads=1, time_limit=PATIENCE)
    s(np.ones(4, np.float32))
    child = os.fork()
    if child == 0:
        try:
            s(np.ones(4, np.float32))
        except ForkedDeviceError:
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_process_ends_while_a_run_is_late():
    done = subprocess.run(
        [sys.executable, "-c", _LATE], capture_output=True, text=True, timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "late\n"), done.stderr


_LATE = """
import landbridge as lb
from tests.session.test_limited_session import LazyKernels, ones, session
api = LazyKernels(0)
s = session(api)
api.hold(0)
try:
    s(ones())
except lb.RunTimeoutError:
    print("late")
"""


def test_no_limit_may_be_declared() -> None:
    """``time_limit=None`` is what a Session without the option has, of every kind of program."""
    for program in (lb.compile(open_model()), lb.compile(open_model(), dims={"n": 4})):
        (y,) = lb.Session(program, time_limit=None)(np.ones((4,), np.float32))
        np.testing.assert_array_equal(np.asarray(y), np.ones((4,)))


def open_model() -> Any:
    """y = relu(x) of an open length."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "open", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
