"""How Sessions behave around processes and threads: exit, fork, Ctrl-C, shutdown order, many at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import landbridge as lb
from landbridge.errors import StorageInUseError
from landbridge.executable.instructions import Call
from tests.vm import programs

SETUP = """
import atexit, gc, os, signal, sys, threading, time
import numpy as np, landbridge as lb
from landbridge.errors import *
from landbridge.executable.instructions import Call
from tests.vm import programs

n = 1 << 16
def executable(calls):  # about 0.25 ms a call
    return programs.executable({"x": (n,)}, {"y": (n,)}, tuple(Call(0, "expm1", (0, 1), n) for _ in range(calls)))
def session(calls, threads):
    s = lb.Session(executable(calls), num_threads=threads)
    s.set_input("x", np.zeros(n, np.float32))
    return s
"""
FOR_EVER = 40_000  # calls: ten seconds and more


def python(code: str, timeout: float = 60, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a child process; ``before`` comes before Landbridge is imported."""
    paths = os.pathsep.join(p for p in sys.path if p)
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", before + SETUP + code],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def check(done: subprocess.CompletedProcess[str], printed: str = "") -> None:
    """The child ended by itself, well, and said ``printed`` and nothing on standard error."""
    assert (done.returncode, done.stderr, done.stdout.split()) == (0, "", printed.split())


# ---- exit


@pytest.mark.sample(2)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("calls", [1, FOR_EVER])
def test_exit_while_a_daemon_thread_runs(threads, calls):
    began = time.monotonic()
    check(
        python(f"""
s = session({calls}, {threads})
def for_ever():
    while True:
        s.run()
threading.Thread(target=for_ever, daemon=True).start()
time.sleep(0.2)
""")
    )
    assert time.monotonic() - began < 30


@pytest.mark.sample(3)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("calls", [1, FOR_EVER])
@pytest.mark.parametrize("keep", ["run = s.run_async()", "s.run_async(); del s"])
def test_exit_with_a_run_in_flight(threads, calls, keep):
    check(python(f"s = session({calls}, {threads})\n{keep}\n"))


def test_exit_with_idle_workers_and_pools():
    check(
        python("""
import warnings
warnings.simplefilter("ignore")  # of fewer cores than threads
kept = [session(1, threads) for threads in (1, 2, 3)]
for s in kept:
    s.run_async().wait()
    s.run()
print(sum(t.name.endswith("run_async") for t in threading.enumerate()))
"""),
        "3",
    )


def test_exit_hooks_run_before_the_end_and_are_reported_after_it():
    before = """
import atexit
def late():  # registered before ours, so called after it: the workers are joined
    try:
        s.run()
    except SessionBusyError as error:
        print("late", "exiting" in str(error))
atexit.register(late)
"""
    code = """
def early():
    s.run()
    print("early", float(np.asarray(s.get_output(0))[0]))
s = session(1, 2)
atexit.register(early)
"""
    check(python(code, before=before), "early 0.0 late True")


def test_finalizers_at_shutdown():
    check(
        python("""
class Keeper:
    def __init__(self, s):
        self.s = s
    def __del__(self):
        try:
            self.s.run()
        except Exception:
            pass
first, second = Keeper(session(1, 2)), Keeper(session(1, 1))
sys.keeper = first  # outlives every module
""")
    )


def test_shutdown_order_of_everything_a_session_gives():
    check(
        python("""
sessions = [session(2, threads) for threads in (1, 2)]
for s in sessions:
    s.run()
s = sessions[0]
bound = lb.empty((n,), dtype="float32")
s.set_input_zero_copy("x", bound)
results = s(np.zeros(n, np.float32))
tensors = [s.get_input("x"), s.get_output(0), *results]
arrays = [np.asarray(t)[3:9] for t in tensors]
capsules = [t.__dlpack__(max_version=(1, 0)) for t in tensors]
views = [t.host_view() for t in tensors]
entered = tensors[1].host_view("r")
held = entered.__enter__()
run = sessions[1].run_async()
sys.extra = [sessions, tensors, arrays, capsules, views, entered, held, run]
cycle = [tensors, sessions]
cycle.append(cycle)
""")
    )


def test_memory_that_outlives_our_modules():
    check(
        python("""
threading.kept = [lb.empty((n,), dtype="float32"), session(1, 1)]
class Producer:
    def __init__(self, array):
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__
threading.kept += [threading.kept[1](np.zeros(n, np.float32)), lb.from_dlpack(Producer(np.zeros(n)))]
# Python empties the modules that somebody holds in the reverse order of their import: ours, then `threading`.
sys.held = [module for name, module in sys.modules.items() if name.startswith(("landbridge", "threading"))]
""")
    )


# ---- fork


@pytest.mark.parametrize("forks", [5, pytest.param(40, marks=pytest.mark.full)])
def test_a_fork_while_another_thread_is_in_anything(forks):
    """Each child compiles, allocates, loads and runs: no lock of the parent's threads is taken in it."""
    check(
        python(
            f"""
import signal
from tests.whole_models.small_models import add
from landbridge.memory.allocators.default import default_allocator
over = threading.Event()
def work(each):
    while not over.is_set():
        each()
def compile_and_run(value=1.0):
    (y,) = lb.Session(lb.compile(add()), num_threads=2)(np.full(64, value, np.float32))
    return np.asarray(y)
want = compile_and_run(3.0)
shared = lb.empty((n,), dtype="float32")
writer, reader = session(4, 2), session(4, 1)
writer.set_output_zero_copy(0, shared)
reader.set_input_zero_copy("x", shared)
def allocate():
    for size in (1, 1 << 10, 1 << 22):
        lb.empty((size,), dtype="uint8").storage.free()
    default_allocator(lb.device("cpu")).trim()
def copy():
    with lb.ledger():
        np.asarray(shared).sum()
        shared.copy()
def run():
    try:
        writer.run_async().wait(), reader.run()
    except HostAccessError:  # the copy's views are open
        pass
threads = [threading.Thread(target=work, args=(each,)) for each in (compile_and_run, allocate, copy, run)]
for t in threads: t.start()
statuses = []
for fork in range({forks}):
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        assert np.array_equal(compile_and_run(3.0), want)
        allocate(), copy()
        new = session(2, 2)
        new.set_output_zero_copy(0, shared)
        new.run(), new.run_async().wait(30)
        assert not np.asarray(new.get_output(0)).any()
        os._exit(0)
    statuses.append(os.waitpid(child, 0)[1])
over.set()
for t in threads: t.join()
print(sum(statuses))
""",
            timeout=300,
        ),
        "0",
    )


_LOADS_AND_FORKS = """
import faulthandler, os, sys, threading, time
import numpy as np, landbridge as lb
sys.setswitchinterval(1e-6)  # so that threads meet each other's fork at any step
x = np.ones(64, np.float32)
over = threading.Event()
def load():
    return lb.load(sys.argv[1])
def run():
    return np.asarray(lb.Session(load(), num_threads=1)(x)[0])
def work(each):
    while not over.is_set():
        each()
threads = [threading.Thread(target=work, args=(each,)) for each in (load, load, run)]
for t in threads: t.start()  # which import what they need meanwhile, and forks begin at once
children = []
for fork in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(60, exit=True)
        assert run()[63] == 64
        assert lb.Session(load(), num_threads=2)(x)[0][63] == 64
        os._exit(0)
    children.append(child)
    time.sleep(0.002)
    if len(children) == 4:
        statuses = [os.waitpid(children.pop(), 0)[1] for _ in range(4)]
        if any(statuses):
            print(statuses, file=sys.stderr)
            os._exit(1)  # else it waits for its threads
over.set()
for t in threads: t.join()
print(*[os.waitpid(child, 0)[1] for child in children])
"""


@pytest.mark.parametrize("forks", [17, pytest.param(201, marks=pytest.mark.full)])
@pytest.mark.parametrize("starts", [3, pytest.param(8, marks=pytest.mark.full)])
def test_a_fork_while_other_threads_load(forks, starts, tmp_path):
    """From the first load on, whose imports a child may need as well; and each load looks for no module again."""
    programs.add_weights(64).save(tmp_path / "add.lbx")
    for _ in range(starts):
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", _LOADS_AND_FORKS, tmp_path / "add.lbx", str(forks)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        check(done, "0")


def test_what_was_done_once_looks_for_no_module_again(tmp_path):
    """Looking for a module takes a lock of the import system, and where there is none, each time."""
    check(
        python(f"""
import copy, importlib.abc, pickle
from tests.whole_models.small_models import add
class Looked(importlib.abc.MetaPathFinder):
    names = []
    def find_spec(self, name, path=None, target=None):
        self.names.append(name)
sys.meta_path.insert(0, Looked())
programs.add_weights(n).save({str(tmp_path / "add.lbx")!r})
def everything():
    for verify in ("auto", "bind", "all"):
        loaded = lb.load({str(tmp_path / "add.lbx")!r}, verify=verify)
    s = lb.Session(loaded, num_threads=2)
    x = np.zeros(n, np.float32)
    s.set_input("x", x), s.run(), s.run_async().wait()
    (y,) = s(x)
    np.asarray(y), y.__dlpack__(), lb.from_dlpack(y), lb.asarray([1.0])
    pickle.loads(pickle.dumps(y, 5)), copy.deepcopy(y)
    pickle.loads(pickle.dumps(loaded))
    for name in ("cpu", "sim:board", "sim:lazy", "opencl", "vulkan", "no device"):
        try:
            y.to_device(name).to_device("cpu")
        except lb.LandbridgeError:
            pass
    with lb.Pool(loaded, 1) as pool:
        pool.submit(x).result()
    lb.Session(lb.compile(add()))
everything()
Looked.names.clear()
everything()
print(*Looked.names)
"""),
        "",
    )


def test_a_pool_of_the_parent_is_refused_in_a_child():
    check(
        python("""
pool = lb.Pool(executable(1), 2)
x = np.zeros(n, np.float32)
pool.submit(x).result()
with pool:
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        for call in (lambda: pool.submit(x), lambda: next(pool.map([x]))):
            try:
                call()
            except ForkedDeviceError as error:
                print("refused", "make a new one in the child" in str(error), flush=True)
        pool.close()
if child == 0:
    with lb.Pool(executable(1), 2) as new:
        print(len(new.submit(x).result()), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""),
        "refused True refused True 1",
    )


def test_fork_forbids_the_parents_sessions_and_allows_new_ones():
    check(
        python("""
parent = session(50, 2)
parent.run_async().wait()
in_flight = session(400, 2)
run = in_flight.run_async()
child = os.fork()
if child == 0:
    refused = 0
    for s in (parent, in_flight):
        for call in (s.run, s.run_async, lambda: s(np.zeros(n, np.float32)), lambda: s.get_output(0),
                     lambda: s.set_input("x", np.zeros(n, np.float32)), lambda: s.set_params({}), s.get_params,
                     lambda: s.set_input_zero_copy("x", np.zeros(n, np.float32)), lambda: s.get_input("x"),
                     lambda: s.set_output_zero_copy(0, np.zeros(n, np.float32)), lambda: s.bind_state(0, 0)):
            try:
                call()
            except ForkedDeviceError:
                refused += 1
    new = session(2, 2)
    new.run()
    pending = new.run_async()
    pending.wait(30)
    alone = lb.Session(parent.executable, num_threads=1)
    alone(np.zeros(n, np.float32))
    print(refused, float(np.asarray(new.get_output(0)).sum()), flush=True)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
run.wait(30)
parent.run()
print("parent", float(np.asarray(in_flight.get_output(0)).sum()))
"""),
        "22 0.0 parent 0.0",
    )


# ---- Ctrl-C


def test_ctrl_c_ends_a_wait_and_not_the_run():
    check(
        python("""
import ctypes
gate = threading.Event()
from landbridge.executable.instructions import HostCall
from landbridge.vm.builtins import register_builtin
register_builtin("child.gate", lambda args, attributes: gate.wait(30))
s = lb.Session(programs.executable({"x": (4,)}, {"y": (4,)}, (HostCall("child.gate", (0, 1), {}),)), num_threads=1)
s.set_input("x", np.zeros(4, np.float32))
for timeout in (None, 25):
    gate.clear()
    run = s.run_async()
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    try:
        run.wait(timeout)
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - began < 10, run.done())
    gate.set()
    run.wait(20)
s.run()
"""),
        "interrupted True False interrupted True False",
    )


def test_ctrl_c_in_a_run_leaves_the_session_usable():
    check(
        python("""
s = session(4000, 1)
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    s.run()
    time.sleep(5)
except KeyboardInterrupt:
    print("interrupted")
s(np.zeros(n, np.float32))
"""),
        "interrupted",
    )


# ---- memory


def test_free_while_a_slice_of_an_output_is_held():
    s = lb.Session(programs.add_weights(1 << 15), num_threads=1)
    (y,) = s(np.zeros(1 << 15, np.float32))
    part = np.asarray(y)[5:9]
    with pytest.raises(StorageInUseError, match="numpy array"):
        y.storage.free()
    assert part.tolist() == [5, 6, 7, 8]
    del part
    y.storage.free()


# ---- threads


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_many_sessions_of_one_executable_in_many_threads(threads):
    exe = programs.two_stages(1 << 12)
    wrong: list[object] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for iteration in range(6):
                s = lb.Session(exe, num_threads=threads)
                a, b = rng.standard_normal((2, 1 << 12), dtype=np.float32)
                s.set_input_zero_copy("a", a)
                s.set_input("b", b)
                for _ in range(25):
                    a += 1
                    if iteration % 2:
                        s.run()
                    else:
                        s.run_async().wait(30)
                    if not np.array_equal(np.asarray(s.get_output(0)), 2 * (a + b)):
                        wrong.append((seed, iteration))
                    if not np.array_equal(np.asarray(s(b, b)[0]), 4 * b):
                        wrong.append((seed, iteration, "call"))
        except BaseException as error:
            wrong.append(error)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_of_threads_that_call_one_session_each_is_served():
    n = 1 << 12
    calls = tuple(Call(0, "expm1", (0, 1), n) for _ in range(20))
    s = lb.Session(programs.executable({"x": (n,)}, {"y": (n,)}, calls), num_threads=1)
    served, wrong = [0] * 3, []
    stop = time.monotonic() + 1.0

    def work(i: int) -> None:
        x = np.full(n, i, np.float32)
        expected = np.expm1(x)
        while time.monotonic() < stop:
            (y,) = s(x)
            served[i] += 1
            if not np.allclose(np.asarray(y), expected, rtol=1e-5):
                wrong.append(i)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong and all(served)
