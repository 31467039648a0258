"""An interrupt at any point of any use leaves a Session free and right, no view open, nothing held and no copy counted.

Every operation is interrupted at each place in turn; after each, everything must be as if it had not begun, or ended.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from random import Random

import numpy as np
import pytest
from onnx import parser

import landbridge as lb
from landbridge.errors import InputError
from landbridge.executable.instructions import Call
from landbridge.memory import ledger
from landbridge.memory.accesses import open_views
from landbridge.session import open_instances
from landbridge.session.open_executor import OpenExecutor
from landbridge.testing.lazy_queue import LazyQueue
from tests.session.interrupts import instructions, interrupted
from tests.vm import programs

N = 64
ONES = np.ones(N, np.float32)
PLACES = 120  # that a test tries by default


def plain() -> lb.Session:
    """A Session whose output is ``expm1`` of its input."""
    return lb.Session(programs.executable({"x": (N,)}, {"y": (N,)}, (Call(0, "expm1", (0, 1), N),)), num_threads=1)


def filled(value: float = 1) -> lb.Tensor:
    tensor = lb.empty((N,), dtype="float32")
    with tensor.host_view("w") as a:
        a[:] = value
    return tensor


def read(tensor: lb.Tensor) -> np.ndarray:
    with tensor.host_view("r") as a:
        return a.copy()


def check_right(s: lb.Session, value: float) -> None:
    """All ways to use ``s`` work, from another thread too, and give the right result."""
    x = filled(value)
    s.set_input("x", x)
    s.run()
    want = np.expm1(np.full(N, value))
    np.testing.assert_allclose(np.asarray(s.get_output(0)), want, rtol=1e-5)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            s.run()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert not thread.is_alive() and not failed
    out = lb.empty((N,), dtype="float32")
    s(x, out=[out])
    np.testing.assert_allclose(read(out), want, rtol=1e-5)
    x.storage.free()  # nobody holds it
    out.storage.free()


class Operations:
    """What is interrupted, on one Session and what it needs."""

    def __init__(self) -> None:
        self.s = plain()
        self.x, self.out, self.tensor, self.other = ONES.copy(), np.empty(N, np.float32), filled(), filled()
        self.s.set_input("x", ONES)
        self.s.run()

    def run(self) -> None:
        self.s.run()

    def first_run(self) -> None:
        self.s = plain()
        self.s.set_input_zero_copy("x", self.x)
        self.s.run()

    def run_with_a_view_open(self) -> None:
        with self.other.host_view("rw"):
            self.s.run()

    def run_async(self) -> None:
        self.s.run_async().wait(30)

    def call(self) -> None:
        self.s(self.tensor)

    def call_out(self) -> None:
        self.s(self.x, out=[self.tensor])

    def set_input(self) -> None:
        self.s.set_input("x", self.x)

    def set_input_from_a_tensor(self) -> None:
        self.s.set_input("x", self.tensor)

    def zero_copy(self) -> None:
        self.s.set_input_zero_copy("x", self.tensor)
        self.s.set_output_zero_copy(0, self.other)
        self.s.set_input_zero_copy("x", self.x)
        self.s.set_output_zero_copy(0, self.out)

    def register_buffers(self) -> None:
        self.s.register_buffers("x", [self.x, self.tensor])
        self.s.register_buffers("x", [])

    def get_output(self) -> None:
        self.s.get_output(0, self.other)
        self.s.get_input("x")

    def shared_runs(self) -> None:
        other = plain()
        other.set_input_zero_copy("x", self.s.get_output(0))
        other.run()
        self.s.run()
        other.run_async().wait(30)

    def host_view(self) -> None:
        with self.tensor.host_view("rw") as a:
            a[:] = 1
        self.tensor.host_view("r").tensor  # noqa: B018

    def copies(self) -> None:
        self.tensor.copy()
        self.tensor.to_device("sim:lazy")
        self.tensor.to_device("cpu")

    def exports(self) -> None:
        np.asarray(lb.asarray(self.x))
        np.from_dlpack(lb.asarray(self.x))

    def allocation(self) -> None:
        for size in (0, N, 1 << 20):
            lb.empty((size,), dtype="float32").storage.free()
        lb.empty((N,), dtype="float32")

    def ledgers(self) -> None:
        with lb.ledger(), lb.no_copies():
            self.s.run()

    def load(self) -> None:
        lb.Session(programs.add_weights(N), num_threads=1)(self.x)


NAMES = [name for name in vars(Operations) if not name.startswith("_")]


@pytest.mark.sample(9)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.full)], ids=["some", "all"])
@pytest.mark.parametrize("name", NAMES)
def test_an_interrupt_leaves_nothing_behind(name: str, every: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # finalizers are interrupted, too; pytest's keeps frames
    objects = Operations()
    action: Callable[[], None] = getattr(objects, name)
    action()  # caches are filled
    step = max(1, instructions(action) // (10 * PLACES if every else PLACES))
    users = objects.tensor.storage.users
    hit = 0
    for number, was_interrupted in enumerate(interrupted(action, step)):
        hit += was_interrupted
        deadline = time.monotonic() + 30
        while not objects.s._entry.free and name in ("run_async", "shared_runs"):  # it ends in the background
            assert time.monotonic() < deadline
            time.sleep(1e-4)
        assert not open_views and not ledger.is_active()
        if number % 8 == 0:
            check_right(objects.s, number % 5)
            objects.s.set_input("x", ONES)
        if name == "first_run":  # it may not have come to that
            objects.s.set_input("x", ONES)
        objects.s.run()
    assert hit
    del objects.s
    gc.collect()
    assert objects.tensor.storage.users in ([], users)
    objects.tensor.storage.free()
    objects.other.storage.free()


class States:
    """A Session that adds ``x`` to each of two sums."""

    def __init__(self) -> None:
        calls = tuple(Call(0, "add", (2 * i, 2 * i + 1, 4 + i), N) for i in range(2))
        inputs = dict.fromkeys(("x0", "h0", "x1", "h1"), (N,))
        self.s = lb.Session(programs.executable(inputs, {"y0": (N,), "y1": (N,)}, calls), num_threads=1)
        for name in ("x0", "x1"):
            self.s.set_input(name, ONES)

    def bind(self) -> None:
        for i in range(2):
            with contextlib.suppress(InputError):  # it is one already
                self.s.bind_state(f"y{i}", f"h{i}")

    def run(self) -> None:
        self.s.run()

    def call(self) -> None:
        self.s(ONES, ONES)

    def sums(self) -> list[float]:
        return [float(np.asarray(self.s.get_output(f"y{i}"))[0]) for i in range(2)]

    def check_they_go_on(self) -> None:
        before = self.sums()
        assert before[0] == before[1]
        for number, use in enumerate((self.run, self.call, self.run)):
            use()
            assert self.sums() == [value + number + 1 for value in before]


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.full)], ids=["some", "all"])
@pytest.mark.parametrize("name", ["bind", "run", "call"])
def test_an_interrupt_leaves_recurrent_states_whole(name: str, every: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run has happened to all of them or to none, and each is bound or is not."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    binds = name == "bind"
    known = [States()]
    if not binds:
        known[0].bind()
        known[0].run()
    steps = (400, 60) if binds else (3, 1)
    for _ in interrupted(lambda: getattr(known[0], name)(), steps[every]):
        if binds:
            known[0].bind()
            known[0].run()
        known[0].check_they_go_on()
        if binds:
            known[0] = States()


def test_an_interrupt_leaves_no_queue_of_sim_lazy_locked() -> None:
    queue = LazyQueue(Random(0))

    def use() -> None:
        queue.submit(0, "nothing")
        queue.touching(None, 0, 1, writes=True)

    use()
    for _ in interrupted(use):
        other = threading.Thread(target=queue.touching, args=(None, 0, 1), kwargs={"writes": True}, daemon=True)
        other.start()
        other.join(10)
        assert not other.is_alive()


def test_no_shape_leads_to_an_instance_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    monkeypatch.setattr(open_instances, "_RETAINED", 2)
    model = parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[n] x) => (float[n] y) { y = Neg(x) }')
    session, lengths = lb.Session(lb.compile(model), num_threads=1), count(1)

    executor = session._executor
    assert isinstance(executor, OpenExecutor)

    def use() -> None:
        session(np.ones(next(lengths) ** 2 % 97, np.float32))

    use()
    for _ in interrupted(use, 5):
        for length in (3, 5, 7):  # others are gone, whether the interrupt came before that was noted or after
            session(np.ones(length, np.float32))
        instances = executor.instances
        assert all(key in instances._instances for key, _ in instances._by_shapes.values())
