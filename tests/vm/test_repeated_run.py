"""Runs of a step on the memory of the run before: what they leave out, and what ends that."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import UseAfterFreeError
from landbridge.executable.instructions import AllocStorage, AllocTensor, Call
from landbridge.memory.allocators.in_flight import finish
from landbridge.vm import kernel_step, kernels_in_flight
from tests.vm.lazy_kernels import N
from tests.vm.test_kernel_step import Recorded, of, program, read

DOUBLE = (Call(0, "double", (0, 1), 1),)


class Counted:
    """A Session of ``y = 2 x`` on ``board``, with the runs that took the long way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, instructions: tuple[Any, ...] = DOUBLE) -> None:
        self.board = Recorded()
        self.session = lb.Session(program(instructions, "x", "y"), devices={"dev": Device(self.board, 0)})
        self.long = 0
        real = kernel_step.KernelStep._run

        def counted(*args: Any) -> Any:
            self.long += 1
            return real(*args)

        monkeypatch.setattr(kernel_step.KernelStep, "_run", counted)

    def run(self) -> int:
        """Returns how many runs took the long way in one more run."""
        before = self.long
        self.session.run()
        return self.long - before


def test_the_second_run_on_the_same_memory_is_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    x, y = of(counted.board, 1), of(counted.board, 0)
    counted.session.set_input_zero_copy("x", x)
    counted.session.set_output_zero_copy("y", y)
    assert [counted.run(), counted.run(), counted.run()] == [1, 0, 0]
    with x.host_view("w") as array:
        array.fill(7)  # behind the host's caches: the next run flushes it
    assert counted.run() == 0
    assert read(y) == 14
    assert counted.run() == 0  # after the host's read, which brought y to the host
    assert counted.board.violations == []


def test_other_memory_takes_the_long_way_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    tensors = [of(counted.board, value) for value in (1, 2)]
    y = of(counted.board, 0)
    counted.session.set_output_zero_copy("y", y)
    for bound, long, expected in ((0, 1, 2), (0, 0, 2), (1, 1, 4), (1, 0, 4), (0, 1, 2)):
        counted.session.set_input_zero_copy("x", tensors[bound])
        assert (counted.run(), read(y)) == (long, expected)
    assert counted.board.violations == []


def test_memory_that_is_bound_no_more_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    x = of(counted.board, 1)
    counted.session.set_input_zero_copy("x", x)
    counted.run()
    counted.session.set_input_zero_copy("x", of(counted.board, 2))
    known = weakref.ref(x)
    del x
    gc.collect()
    assert known() is None
    assert counted.run() == 1
    assert read(counted.session.get_output("y")) == 4


def test_freed_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by the lease of a Session: as a device's own function is given it, without one."""
    counted = Counted(monkeypatch)
    x = of(counted.board, 1)
    counted.session.set_input_zero_copy("x", x)
    counted.run()
    monkeypatch.setattr(x.storage, "region", None)
    with pytest.raises(UseAfterFreeError):
        counted.run()


def test_a_copy_that_is_left_out_is_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is launched there is nothing to repeat, although an earlier run recorded launches."""
    copy = Call(0, "double", (0, 1), 1, "copy", 4 * N)
    counted = Counted(monkeypatch, (copy,))
    state, other = of(counted.board, 5), of(counted.board, 0)
    counted.session.set_input_zero_copy("x", state)
    for target, launches in ((other, 1), (state, 0), (state, 0), (other, 1)):
        counted.session.set_output_zero_copy("y", target)
        with other.host_view("w") as array:
            array.fill(0)
        counted.run()
        assert read(other) == 5 * launches  # copied by the device itself, not by the kernel, which would double it
    assert read(state) == 5


def test_scratch_memory_stays_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = (AllocStorage(2, 4 * N, 0, 64), AllocTensor(3, 2, 0, (N,), "float32", "other"))
    counted = Counted(monkeypatch, (*storage, Call(0, "double", (0, 3), 1), Call(0, "double", (3, 1), 1)))
    counted.session.set_input_zero_copy("x", of(counted.board, 1))
    assert [counted.run(), counted.run()] == [1, 0]
    assert read(counted.session.get_output("y")) == 4


def test_an_interrupted_run_holds_what_is_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device goes on after the interrupt, when other memory may be bound and the caller let it go."""
    counted = Counted(monkeypatch)
    for long in (1, 1, 0):
        if long:
            x, y = of(counted.board, 1), of(counted.board, 0)
            counted.session.set_input_zero_copy("x", x)
            counted.session.set_output_zero_copy("y", y)
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(kernels_in_flight, "wait_for_event", _interrupt)
            counted.run()
    held = [weakref.ref(x), weakref.ref(y)]
    del x, y
    counted.session.set_input_zero_copy("x", of(counted.board, 3))
    counted.session.set_output_zero_copy("y", of(counted.board, 0))
    gc.collect()
    assert None not in [each() for each in held]
    finish(Device(counted.board, 0))
    gc.collect()
    assert [each() for each in held] == [None, None]
    counted.session.run()
    assert read(counted.session.get_output("y")) == 6
    assert counted.board.violations == []


def test_an_interrupt_after_a_replay_leaves_no_recording_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is bound to memory that nobody noted: later runs on the memory before would be on that."""
    counted = Counted(monkeypatch)
    tensors = [(of(counted.board, value), of(counted.board, 0)) for value in (1, 2)]

    def bind(number: int) -> lb.Tensor:
        x, y = tensors[number]
        counted.session.set_input_zero_copy("x", x)
        counted.session.set_output_zero_copy("y", y)
        return y

    bind(0)
    counted.run()
    bind(1)
    replay, sync = counted.board.replay, counted.board.stream_sync
    waited: list[object] = []

    def synchronize(*args: Any) -> None:
        sync(*args)
        waited.append(args)

    def interrupted(*args: Any) -> Any:
        replay(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(counted.board, "replay", interrupted)
        patched.setattr(counted.board, "stream_sync", synchronize)
        counted.run()
    assert waited  # as nobody has the event of what was queued, and the memory may be let go now
    for number in (0, 1, 0):
        with bind(number).host_view("w") as array:
            array.fill(0)
        counted.run()
        assert read(tensors[number][1]) == 2 * (number + 1)


def _interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt
