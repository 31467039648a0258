import contextlib
import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from dataclasses import replace

import numpy as np
import pytest

import landbridge as lb
from landbridge.errors import (
    BindError,
    CopyForbiddenError,
    ExecutableError,
    ForkedDeviceError,
    HostAccessError,
    InputError,
    SessionBusyError,
    ZeroCopyError,
)
from landbridge.executable.instructions import AllocStorage, Call, HostCall, LoadConstant, ToVDevice, View
from landbridge.executable.parts import VDevice
from landbridge.vm.builtins import register_builtin
from tests.session import place as session_place
from tests.session.place import On, empty, where  # noqa: F401
from tests.vm import programs

WEIGHTS = np.arange(64, dtype=np.float32)


def session(executable=None, **options) -> lb.Session:
    return session_place.session(executable or programs.add_weights(), **options)


def floats(n: int = 64, start: float = 0.5) -> np.ndarray:
    return np.linspace(start, start + 9, n, dtype=np.float32)


def values(tensor) -> np.ndarray:
    return np.asarray(tensor)


# ---- inputs


def test_set_input_is_by_value():
    s, x = session(), floats()
    s.set_input("x", x)
    before = x.copy()
    x[:] = -1
    s.run()
    assert np.array_equal(values(s.get_output(0)), before + WEIGHTS)


@pytest.mark.parametrize(
    "strided",
    [
        lambda a: np.repeat(a, 2)[::2],
        lambda a: a[::-1],
        lambda a: np.broadcast_to(a[:1], (64,)),
        lambda a: lb.asarray(a.copy()),
        lambda a: a.astype(">f4").astype(">f4"),
    ],
)
def test_set_input_takes_any_strides(strided):
    s, x = session(), strided(floats())
    s.set_input(0, x)
    s.run()
    assert np.array_equal(values(s.get_output("y")), np.asarray(x) + WEIGHTS)


def test_zero_copy_input_is_read_where_it_is():
    s, x = session(), floats()
    s.set_input_zero_copy("x", x)
    s.run()
    assert np.array_equal(values(s.get_output(0)), x + WEIGHTS)
    x[:] = 7
    s.run()
    assert np.array_equal(values(s.get_output(0)), 7 + WEIGHTS)
    assert s.get_input("x").data_address == x.ctypes.data


def test_read_only_input_is_taken_by_reference():
    s, x = session(), floats()
    x.flags.writeable = False
    s.set_input_zero_copy("x", x)
    s.run()
    assert np.array_equal(values(s.get_output(0)), x + WEIGHTS)
    assert s.get_input("x").readonly


class Producer:
    """A DLPack producer that is no numpy array."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_tensor_and_dlpack_inputs_by_reference():
    s, x = session(), floats()
    for source in (lb.asarray(x, copy=False), Producer(x), np.asarray(memoryview(x))):
        s.set_input_zero_copy("x", source)
        assert s.get_input("x").data_address == x.ctypes.data
        s.run()
        assert np.array_equal(values(s.get_output(0)), x + WEIGHTS)


def test_get_input_is_writable_memory_of_the_session():
    s = session()
    with s.get_input("x").host_view("rw") as view:
        assert not view.any()
        view[:] = 3
    s.run()
    assert np.array_equal(values(s.get_output(0)), 3 + WEIGHTS)


def test_a_run_conflicts_with_an_open_view():
    s = session()
    with s.get_input("x").host_view("rw"), pytest.raises(HostAccessError, match="input 'x'"):
        s.run()
    with s.get_input("x").host_view("r"):
        s.run()
    x = empty((64,))
    with x.host_view("w"), pytest.raises(HostAccessError, match="input 'x'"):
        s(x)
    with s.get_output(0).host_view("r"), pytest.raises(HostAccessError, match="output 'y'"):
        s.run()
    s.run()


def unaligned() -> np.ndarray:
    return np.zeros(64 * 4 + 1, np.uint8)[1:].view(np.float32)


@pytest.mark.parametrize(
    ("value", "error", "reason"),
    [
        (floats()[::-1], ZeroCopyError, "not C-contiguous"),
        (unaligned(), ZeroCopyError, "not aligned"),
        (floats().astype(">f4"), ZeroCopyError, "other order"),
        (floats(32), InputError, r"shape \(32,\), it takes \(64,\)"),
        (floats().reshape(8, 8), InputError, "rank 2"),
        (floats().astype(np.float64), InputError, "dtype float64, it takes float32"),
        (np.array(["a"] * 64), InputError, "dtype <U1"),
        ([1.0] * 64, InputError, "a list cannot be bound by reference"),
        (None, InputError, "NoneType"),
    ],
)
def test_zero_copy_input_says_why_not_and_changes_nothing(value, error, reason):
    s, x = session(), floats()
    s.set_input_zero_copy("x", x)
    with pytest.raises(error, match=reason):
        s.set_input_zero_copy("x", value)
    with pytest.raises(error, match=reason):
        s(value)
    s.run()
    assert np.array_equal(values(s.get_output(0)), x + WEIGHTS)


@pytest.mark.parametrize("value", [floats(32), floats().astype(np.int32), 1.0, ["a"], None, object()])
def test_set_input_of_what_does_not_fit(value):
    s, x = session(), floats()
    s.set_input("x", x)
    with pytest.raises(InputError, match="input 'x'"):
        s.set_input("x", value)
    s.run()
    assert np.array_equal(values(s.get_output(0)), x + WEIGHTS)


@pytest.mark.parametrize("name", ["X", 1, -1, None, ("x",), []])
def test_unknown_names(name):
    s = session()
    for call in (s.set_input, s.set_input_zero_copy):
        with pytest.raises(InputError, match=r"no input .* legal: x"):
            call(name, floats())
    for call in (s.set_output_zero_copy,):
        with pytest.raises(InputError, match=r"no output .* legal: y"):
            call(name, floats())
    with pytest.raises(InputError, match="no output"):
        s.get_output(name)
    with pytest.raises(InputError, match="no input"):
        s.get_input(name)


def test_missing_inputs_are_named():
    s = session(programs.two_stages())
    s.set_input("a", floats())
    with pytest.raises(InputError, match="input 'b'"):
        s.run()
    s.set_input("b", floats())
    s.run()


def test_bound_arrays_live_until_replaced():
    s, x = session(), floats()
    gone = weakref.ref(x)
    s.set_input_zero_copy("x", x)
    del x
    gc.collect()
    assert gone() is not None
    s.set_input_zero_copy("x", floats())
    gc.collect()
    assert gone() is None


# ---- outputs


def test_zero_copy_output_is_written_where_it_is():
    s, x, y = session(), floats(), np.zeros(64, np.float32)
    s.set_input_zero_copy("x", x)
    s.set_output_zero_copy(0, y)
    s.run()
    assert np.array_equal(y, x + WEIGHTS)
    assert s.get_output(0).data_address == y.ctypes.data


def test_output_in_a_tensor():
    s, y = session(), empty((64,))
    s.set_input("x", floats())
    s.set_output_zero_copy("y", y)
    s.run()
    assert np.array_equal(values(y), floats() + WEIGHTS)


def test_read_only_output():
    s, y = session(), floats()
    y.flags.writeable = False
    with pytest.raises(ZeroCopyError, match="read-only"):
        s.set_output_zero_copy(0, y)
    with pytest.raises(ZeroCopyError, match="read-only"):
        s(floats(), out=[y])
    assert np.array_equal(y, floats())


def test_get_output_aliases_or_copies():
    s, x = session(), floats()
    with pytest.raises(InputError, match=r"call run\(\)"):
        s.get_output(0)
    s.set_input_zero_copy("x", x)
    s.run()
    y, retained = s.get_output(0), np.zeros(64, np.float32)
    assert s.get_output(0, out=retained) is retained
    x[:] = 0
    s.run()
    assert np.array_equal(values(y), WEIGHTS)
    assert np.array_equal(retained, floats() + WEIGHTS)
    with y.host_view("r") as view:
        assert view.ctypes.data == y.data_address


@pytest.mark.parametrize("wrong", [floats(3), floats().astype(np.float64)])
def test_get_output_into_what_does_not_fit(wrong):
    s = session()
    s.set_input("x", floats())
    s.run()
    with pytest.raises(InputError, match="output 'y'"):
        s.get_output(0, out=wrong)


# ---- overlap


def test_overlap_of_input_and_output():
    s, memory = session(), np.zeros(100, np.float32)
    x, y = memory[:64], memory[36:]
    s.set_input_zero_copy("x", x)
    with pytest.raises(InputError, match=r"output 'y' would share 112 bytes with input 'x'"):
        s.set_output_zero_copy(0, y)
    with pytest.raises(InputError, match="share"):
        s(x, out=[y])
    with pytest.raises(InputError, match="share 256 bytes"):
        s(x, out=[x])
    s.run()
    assert np.array_equal(values(s.get_output(0)), WEIGHTS)
    assert not memory.any()


def test_input_over_the_sessions_own_output():
    s = session()
    s.set_input("x", floats())
    s.run()
    with pytest.raises(InputError, match="share"):
        s.set_input_zero_copy("x", np.asarray(s.get_output(0)))


def test_own_input_memory_borrowed_as_output():
    s, x = session(), floats()
    s.set_input("x", x)
    owned = s.get_input("x")
    s.set_input_zero_copy("x", x)
    s.set_output_zero_copy(0, owned)
    with pytest.raises(InputError, match="share"):
        s.set_input("x", x)
    s.run()
    assert np.array_equal(values(owned), x + WEIGHTS)


def test_neighbours_do_not_overlap():
    s, memory = session(), np.zeros(128, np.float32)
    s.set_output_zero_copy(0, memory[64:])
    s.set_input_zero_copy("x", memory[:64])
    s.run()
    assert np.array_equal(memory, np.concatenate([np.zeros(64), WEIGHTS]))


def test_one_array_for_two_inputs_but_not_for_two_outputs():
    s, x = session(programs.two_stages()), floats()
    (y,) = s(x, x)
    assert np.array_equal(values(y), 4 * x)
    r, y = session(programs.recurrent()), np.zeros(4, np.float32)
    with pytest.raises(InputError, match="share"):
        r(floats(4), floats(4), out=[y, y])
    r.set_output_zero_copy(0, y)
    with pytest.raises(InputError, match="share"):
        r.set_output_zero_copy(1, y)


# ---- calls


def test_call_results_are_never_overwritten():
    s, x = session(), floats()
    results = [s(x + i)[0] for i in range(5)]
    for i, y in enumerate(results):
        assert np.array_equal(values(y), x + i + WEIGHTS)


def test_call_leaves_what_is_bound():
    s, x, y = session(), floats(), np.zeros(64, np.float32)
    s.set_input_zero_copy("x", x)
    s.set_output_zero_copy(0, y)
    s(np.zeros(64, np.float32))
    assert not y.any()
    s.run()
    assert np.array_equal(y, x + WEIGHTS)


def test_call_with_out():
    s, x, y = session(), floats(), np.zeros(64, np.float32)
    assert s(x, out=[y])[0] is y
    assert np.array_equal(y, x + WEIGHTS)


@pytest.mark.parametrize("count", [0, 2])
def test_call_with_the_wrong_number(count):
    s = session()
    with pytest.raises(InputError, match=rf"{count} inputs given, the program takes 1: x"):
        s(*[floats()] * count)
    with pytest.raises(InputError, match=rf"{count} outputs given, the program takes 1: y"):
        s(floats(), out=[floats()] * count)


# ---- programs


def test_arena_and_views():
    s, a, b = session(programs.two_stages()), floats(), floats(start=-3)
    (y,) = s(a, b)
    assert np.array_equal(values(y), 2 * (a + b))


@pytest.mark.parametrize(("c", "factor"), [(1.0, 2), (-1.0, 1)])
def test_branches(c, factor):
    s, x = session(programs.branches()), floats(8)
    y, z = s(x, np.array([c], np.float32))
    assert np.array_equal(values(y), factor * x)
    assert np.array_equal(values(z), 2 * factor * x)


def test_condition_that_is_an_input_follows_rebinding():
    executable = programs.branches()
    s, x = session(executable), floats(8)
    s.set_input_zero_copy("x", x)
    for c in (1.0, -1.0):
        s.set_input_zero_copy("c", np.array([c], np.float32))
        s.run()
        assert np.array_equal(values(s.get_output("y")), x * (2 if c > 0 else 1))


def test_several_threads_agree_with_one():
    n = 1 << 13  # enough to be worth sharing
    s, x = session(programs.add_weights(n), num_threads=2), floats(n)
    for _ in range(200):
        (y,) = s(x)
        assert np.array_equal(values(y), x + np.arange(n, dtype=np.float32))


def test_host_builtins_and_copies_between_vdevices():
    register_builtin(
        f"test.negate.{On.scope}", lambda args, attributes: np.multiply(args[0], -attributes["by"], out=args[1])
    )
    n = 8
    program = (
        AllocStorage(2, 4 * n, 0, 64),
        View(3, 2, 0, (n,), "float32"),
        AllocStorage(4, 4 * n, 1, 64),
        View(5, 4, 0, (n,), "float32"),
        Call(0, "double", (0, 3), n),
        HostCall(f"test.negate.{On.scope}", (3, 3), {"by": 1}),
        ToVDevice(3, 5, "t"),
        Call(0, "double", (5, 1), n),
    )
    executable = replace(
        programs.executable({"x": (n,)}, {"y": (n,)}, program), vdevices=(VDevice("main", 0), VDevice("other", 0))
    )
    s, x = session(executable), floats(n)
    with lb.ledger() as moves:
        (y,) = s(x)
    assert np.array_equal(values(y), -4 * x)
    assert [(m.cause, m.nbytes, m.tensor, m.source, m.destination) for m in moves] == [
        ("to_vdevice", 4 * n, "t", "main", "other")
    ]


def test_a_host_builtins_exception_leaves_the_session_usable():
    state = {"fail": True}

    def builtin(args, attributes):
        if state["fail"]:
            raise ValueError("no")
        args[1][:] = args[0]

    register_builtin(f"test.fail_once.{On.scope}", builtin)
    s = session(programs.executable({"x": (4,)}, {"y": (4,)}, (HostCall(f"test.fail_once.{On.scope}", (0, 1), {}),)))
    with pytest.raises(ValueError, match="no"):
        s(floats(4))
    state["fail"] = False
    assert np.array_equal(values(s(floats(4))[0]), floats(4))


@pytest.mark.parametrize(
    ("instructions", "reason"),
    [
        ((Call(0, "missing", (0, 1), 1),), "no function 'missing'"),
        ((Call(3, "double", (0, 1), 1),), "module 3 of 1"),
        ((Call(0, "double", (0, 9), 1),), "register 9 is used before"),
        ((View(2, 0, 4, (64,), "float32"),), "lies outside register 0"),
        ((View(0, 1, 0, (64,), "float32"),), "cannot be redefined"),
        ((LoadConstant(2, "nothing", 0),), "constant 'nothing'"),
        ((AllocStorage(2, 64, 5, 64),), "vdevice 5 of 1"),
        ((HostCall("no_such_builtin", (0,), {}),), "host builtin 'no_such_builtin'"),
    ],
)
def test_programs_that_cannot_be_bound(instructions, reason):
    with pytest.raises(BindError, match=reason):
        session(programs.executable({"x": (64,)}, {"y": (64,)}, instructions))


def test_options_that_cannot_be():
    with pytest.raises(BindError, match=r"no vdevice 'man'.*did you mean 'main'"):
        session(devices={"man": "cpu"})
    with pytest.raises(InputError, match="num_threads is 0"):
        session(num_threads=0)
    with pytest.raises(ExecutableError, match="compiled for sparc"):
        session(programs.executable({}, {}, (), image=replace(programs.code_image(), isa="sparc")))
    assert session(devices={"main": "cpu:0"}, device="no-such-device")


# ---- recurrent state


def test_state_swaps_without_a_copy():
    s, x = session(programs.recurrent()), np.ones(4, np.float32)
    s.bind_state("h_out", "h_in")
    s.set_input_zero_copy("x", x)
    with lb.no_copies():
        for step in range(1, 6):
            s.run()
            assert np.array_equal(values(s.get_output("h_out")), np.full(4, step))
            assert np.array_equal(values(s.get_output("y")), np.full(4, 2 * step))
        (y,) = s(x)
    assert np.array_equal(values(y), np.full(4, 12))
    s.run()
    assert np.array_equal(values(s.get_output("y")), np.full(4, 14))
    s.set_input("h_in", np.zeros(4, np.float32))
    s.run()
    assert np.array_equal(values(s.get_output("h_out")), np.ones(4))


def test_state_starts_with_the_value_bound():
    start = floats(4)
    for give in ("set_input", "set_input_zero_copy"):
        s = session(programs.recurrent())
        getattr(s, give)("h_in", start)
        s.bind_state("h_out", "h_in")
        s.set_input("x", np.ones(4, np.float32))
        s.run()
        s.run()
        assert np.array_equal(values(s.get_output("h_out")), floats(4) + 2)
    assert np.array_equal(start, floats(4))


def test_state_memory_is_the_sessions():
    s = session(programs.recurrent())
    s.bind_state("h_out", "h_in")
    with pytest.raises(InputError, match="recurrent state"):
        s.set_input_zero_copy("h_in", floats(4))
    with pytest.raises(InputError, match="recurrent state"):
        s.set_output_zero_copy("h_out", floats(4))
    with pytest.raises(InputError, match="recurrent state already"):
        s.bind_state("h_out", "h_in")
    with pytest.raises(InputError, match="2 inputs given, the program takes 1: x"):
        s(floats(4), floats(4))
    with pytest.raises(InputError, match="share"):
        s(floats(4), out=[np.asarray(s.get_input("h_in"))])


def test_state_memory_is_not_borrowed_again():
    s = session(programs.recurrent())
    s.bind_state("h_out", "h_in")
    for tensor in (s.get_input("h_in"), s.get_output("h_out")):
        with pytest.raises(InputError, match="share"):
            s.set_input_zero_copy("x", tensor)
    s = session(programs.recurrent())
    s.set_input_zero_copy("x", s.get_input("h_in"))
    with pytest.raises(InputError, match="share"):
        s.bind_state("h_out", "h_in")
    s.run()


def test_state_of_unequal_halves():
    with pytest.raises(InputError, match="must be equal"):
        session(programs.branches()).bind_state("y", "c")


# ---- the ledger


def test_zero_copy_run_moves_nothing():
    s, x, y = session(), floats(), np.zeros(64, np.float32)
    with lb.ledger() as moves, lb.no_copies():
        s.set_input_zero_copy("x", x)
        s.set_output_zero_copy(0, y)
        s.run()
        s(x)
        s(x, out=[y])
    assert moves.total_bytes == 0
    assert np.array_equal(y, x + WEIGHTS)


def test_copies_are_listed_or_forbidden():
    s = session()
    with lb.ledger() as moves:
        s.set_input("x", floats())
        s.run()
        s.get_output(0, out=np.zeros(64, np.float32))
    assert [(m.cause, m.nbytes, m.tensor) for m in moves] == [("set_input", 256, "x"), ("get_output", 256, "y")]
    with lb.no_copies(), pytest.raises(CopyForbiddenError, match="set_input"):
        s.set_input("x", floats(start=5))
    s.run()
    assert np.array_equal(values(s.get_output(0)), floats() + WEIGHTS)


def test_forbidden_copy_keeps_a_reference_bound():
    s, x = session(), floats()
    s.set_input_zero_copy("x", x)
    with lb.no_copies(), pytest.raises(CopyForbiddenError):
        s.set_input("x", floats(start=5))
    assert s.get_input("x").data_address == x.ctypes.data


def test_kernels_that_only_move_are_listed():
    s, x = session(programs.moves_data()), floats()
    with lb.ledger() as moves:
        s.set_input_zero_copy("x", x)
        s.run()
        s(x)
    assert [(m.cause, m.nbytes, m.tensor) for m in moves] == [("kernel:reorder", 256, "reorder_x")] * 2


# ---- files


def test_constants_are_used_in_the_mapped_file(tmp_path):
    programs.add_weights().save(tmp_path / "model.lbx")
    executable = lb.load(tmp_path / "model.lbx")
    s = session(executable)
    weights = executable.constants["w"].ctypes.data
    assert weights in list(s._executor.program.runs.frame.words)
    assert np.array_equal(values(s(floats())[0]), floats() + WEIGHTS)


def test_a_session_outlives_file_and_executable(tmp_path):
    path = tmp_path / "model.lbx"
    programs.add_weights().save(path)
    s = session(lb.load(path))
    path.unlink()
    gc.collect()
    assert np.array_equal(values(s(floats())[0]), floats() + WEIGHTS)


# ---- threads and processes


def slow_session() -> lb.Session:
    """A Session whose run takes about half a second in native code."""
    n = 1 << 16
    calls = tuple(Call(0, "expm1", (0, 1), n) for _ in range(2000))
    return session(programs.executable({"x": (n,)}, {"y": (n,)}, calls))


def test_second_thread_is_refused_while_running():
    s = slow_session()
    s.set_input("x", np.zeros(1 << 16, np.float32))
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            with contextlib.suppress(SessionBusyError):  # this thread is between two calls of its own
                s.run()

    worker = threading.Thread(target=work)
    worker.start()
    refused = []
    deadline = time.monotonic() + 60
    while not refused and time.monotonic() < deadline:
        for call in (s.run, lambda: s.get_output(0), lambda: s.set_input("x", 1.0), lambda: s.get_input("x")):
            with contextlib.suppress(InputError):
                try:
                    call()
                except SessionBusyError as error:
                    refused.append(str(error))
    over.set()
    worker.join()
    assert refused and "another thread" in refused[0]
    s.get_output(0)


def test_fork_leaves_the_parents_session_and_allows_a_new_one():
    n = 1 << 13
    executable, x, weights = programs.add_weights(n), floats(n), np.arange(n, dtype=np.float32)
    s = session(executable, num_threads=2)
    s(x)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        verdict = b"?"
        try:
            try:
                s(x)
            except ForkedDeviceError:
                verdict = b"f"
            y = np.zeros(n, np.float32)
            session(executable, num_threads=2)(x, out=[y])
            verdict += b"n" if np.array_equal(y, x + weights) else b"w"
        except BaseException as error:
            verdict += repr(error).encode()
        finally:
            os.write(write, verdict)
            os._exit(0)
    os.close(write)
    try:
        assert os.read(read, 1000) == b"fn"
    finally:
        os.close(read)
        os.waitpid(child, 0)
    assert np.array_equal(values(s(x)[0]), x + weights)


def python(code: str) -> subprocess.CompletedProcess:
    paths = os.pathsep.join(p for p in sys.path if p)
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize("threads", [1, 2])
def test_exit_while_a_daemon_thread_runs(threads):
    done = python(f"""
import threading, time, numpy as np, landbridge as lb
from tests.vm import programs
s = lb.Session(programs.add_weights(1 << 13), num_threads={threads})
x = np.zeros(1 << 13, np.float32)
def forever():
    while True:
        s(x)
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.1)
""")
    assert done.returncode == 0, done.stderr


def test_loading_and_running_imports_no_compiler(tmp_path):
    programs.add_weights().save(tmp_path / "model.lbx")
    done = python(f"""
import sys, numpy as np, landbridge as lb
s = lb.Session(lb.load({str(tmp_path / "model.lbx")!r}), num_threads=1)
s(np.zeros(64, np.float32))
print([name for name in ("xdsl", "onnx", "llvmlite", "argparse", "tvm_ffi") if name in sys.modules])
""")
    assert done.stdout.strip() == "[]", done.stderr
