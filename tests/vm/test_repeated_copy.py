"""Copies into and out of a program's memory like the copy before: what they leave out, and what ends that."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import CopyForbiddenError, HostAccessError, InputError
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import Call
from landbridge.executable.parts import ModuleImage, VDevice
from landbridge.memory.allocators import base
from landbridge.memory.allocators.in_flight import finish
from landbridge.targets import Target
from landbridge.tensor.copy import copy_tensor
from landbridge.vm import repeated_copy as repeated_copy_module
from landbridge.vm import run_arguments
from landbridge.vm.entry import Entry
from landbridge.vm.lease import SlotUse, Tenancy
from landbridge.vm.repeated_copy import repeated_copy
from tests.testing.admitted import admitted
from tests.testing.honest_devices import CopiesWords
from tests.vm import programs
from tests.vm.lazy_kernels import IMAGE, N
from tests.vm.test_borrowed_memory import CACHED, StrictBoard

#: Memory behind the host's caches, memory that host and device see alike, and memory that the host does not see.
KINDS: dict[str, dict[str, Any]] = {
    "cached": CACHED,
    "shared": {"scope": "shared", "host_access": "read_write", "coherent": True, "offset_alignment": 64},
    "global": {"scope": "global", "host_access": "none", "coherent": False, "offset_alignment": 64},
}


def doubling(scope: str) -> Executable:
    """``y = 2 x`` on a device."""
    exe = programs.executable({"x": (N,)}, {"y": (N,)}, (Call(0, "double", (0, 1), 1),))
    target = Target({"kind": "llvm", "memory": [KINDS[scope]]}).to_json()
    return replace(exe, vdevices=(VDevice("dev", 0, scope),), modules=(ModuleImage(target, IMAGE),))


class Copies:
    """A Session in one kind of memory; ``long`` counts the copies that took the long way."""

    def __init__(self, scope: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.board, self.long = StrictBoard(), 0
        self.session = lb.Session(doubling(scope), devices={"dev": Device(self.board, 0)})
        self.out = np.zeros(N, np.float32)

        def counted(*args: Any, **options: Any) -> None:
            self.long += 1
            copy_tensor(*args, **options)

        monkeypatch.setattr(run_arguments, copy_tensor.__name__, counted)

    def iterate(self, value: Any) -> int:
        """Set the input, run, and get the output, which is twice the value; returns how many copies were long."""
        before = self.long
        self.session.set_input("x", value)
        self.session.run()
        assert self.session.get_output("y", out=self.out) is self.out
        np.testing.assert_array_equal(self.out, 2 * np.asarray(value))
        return self.long - before


@pytest.fixture(params=sorted(KINDS))
def copies(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Copies]:
    created = Copies(request.param, monkeypatch)
    yield created
    assert created.board.violations == []


def ramp(start: int) -> np.ndarray:
    return np.arange(start, start + N, dtype=np.float32)


def test_copies_after_the_first_are_short(copies: Copies) -> None:
    x = ramp(1)
    assert copies.iterate(x) >= 2  # hidden outputs are zeroed, too
    x += 1
    assert copies.iterate(x) == 0
    x.flags.writeable = False
    assert [copies.iterate(x), copies.iterate(ramp(9))] == [0, 0]


def test_other_arrays_take_the_long_way(copies: Copies) -> None:
    copies.iterate(ramp(1))
    strided = np.arange(2 * N, dtype=np.float32)[::2]
    swapped = ramp(3).astype(">f4")
    assert [copies.iterate(strided), copies.iterate(swapped), copies.iterate(lb.asarray(ramp(5)))] == [1, 1, 1]
    for wrong in (ramp(1).astype(np.float64), ramp(1).reshape(1, N)):
        with pytest.raises(InputError):
            copies.session.set_input("x", wrong)
    with pytest.raises(InputError):
        copies.session.get_output("y", out=np.zeros(N, np.float64))
    readonly = np.zeros(N, np.float32)
    readonly.flags.writeable = False
    with pytest.raises(InputError):
        copies.session.get_output("y", out=readonly)
    assert copies.iterate(ramp(2)) == 0


def test_arrays_of_elements_that_no_tensor_has(copies: Copies) -> None:
    """Elements at no multiples of their size are copied both ways; those of the other byte order are no output."""
    for start in (1, 5):  # the long way, and after it
        odd = np.ndarray((N,), np.float32, bytearray(4 * N + 1), 1)
        odd[:] = ramp(start)
        copies.iterate(odd)
        odd.fill(0)
        copies.session.get_output("y", out=odd)
        np.testing.assert_array_equal(odd, 2 * ramp(start))
        with pytest.raises(InputError, match="never cast"):
            copies.session.get_output("y", out=np.zeros(N, ">f4"))
        odd.flags.writeable = False
        with pytest.raises(InputError):
            copies.session.get_output("y", out=odd)


def test_copies_are_watched(copies: Copies) -> None:
    copies.iterate(ramp(1))
    with lb.ledger() as moves:
        assert copies.iterate(ramp(2)) == 2
    assert [move.cause for move in moves if not move.is_kernel][-1] == "get_output"
    assert moves.total_bytes >= 8 * N
    with lb.no_copies(), pytest.raises(CopyForbiddenError):
        copies.session.set_input("x", ramp(3))


def test_memory_of_the_application_takes_the_long_way_once(copies: Copies) -> None:
    """What is bound in between, and bound no more."""
    copies.iterate(ramp(1))
    given = copies.session.get_input("x")
    other = lb.empty((N,), dtype="float32", device=given.device, scope=given.scope)
    copies.session.set_input_zero_copy("x", other)
    assert copies.iterate(ramp(2)) == 1
    np.testing.assert_array_equal(np.asarray(given.to_device("cpu")), ramp(2))
    copies.iterate(ramp(3))  # after a copy that may still be queued
    assert copies.iterate(ramp(4)) == 0


@pytest.mark.parametrize("scope", ["cached", "shared"])
def test_host_views_of_the_memory(scope: str, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = Copies(scope, monkeypatch)
    copies.iterate(ramp(1))
    memory = copies.session.get_input("x")
    with memory.host_view("rw") as array:
        array += 1
        with pytest.raises(HostAccessError):
            copies.session.set_input("x", ramp(2))
    copies.session.run()
    copies.session.get_output("y", out=copies.out)
    np.testing.assert_array_equal(copies.out, 2 * ramp(2))
    assert copies.iterate(ramp(3)) == 0
    with memory.host_view("r") as array:
        np.testing.assert_array_equal(array, ramp(3))
    assert copies.board.violations == []


def test_an_array_over_the_memory_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = Copies("shared", monkeypatch)
    for _ in range(2):
        copies.iterate(ramp(1))
        itself = np.asarray(copies.session.get_input("x"))
        with pytest.raises(HostAccessError):
            copies.session.set_input("x", itself)
        del itself


def test_a_lasting_view_learns_of_a_short_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = Copies("cached", monkeypatch)
    assert [copies.iterate(ramp(1)), copies.iterate(ramp(2))][1] == 0
    view = copies.session.get_input("x").host_view("rw")
    view.invalidate()
    copies.session.set_input("x", ramp(3))
    with pytest.raises(HostAccessError, match="host and device both wrote"):
        view.flush()


@pytest.mark.parametrize("scope", sorted(KINDS))
def test_another_tensor_is_not_copied(scope: str) -> None:
    device = Device(StrictBoard(), 0)
    first, second = (lb.empty((N,), dtype="float32", device=device, scope=scope) for _ in range(2))
    program = Tenancy(first, "x", Entry("a program"), SlotUse(True), may_write=True, in_place=False)
    array = ramp(1)
    copy = repeated_copy(first, lb.asarray(array), array.dtype, writes=True)
    assert copy is not None
    assert [copy.take(array, tensor, "a copy") for tensor in (second, first)] == [False, True]
    other = Tenancy(first, "y", Entry("another program"), SlotUse(False), may_write=False, in_place=False)
    assert not copy.take(array, first, "a copy")
    del program, other


@pytest.mark.parametrize(("nbytes", "is_short"), [(40, True), (41, False)])
def test_parts_of_granules_take_the_long_way(nbytes: int, is_short: bool) -> None:
    """Of a device that copies words alone: it takes no other bytes."""
    with admitted(CopiesWords()):
        there = lb.empty((nbytes,), dtype="uint8", device="mutant")
        program = Tenancy(there, "x", Entry("a program"), SlotUse(True), may_write=True, in_place=False)
        array = np.arange(nbytes, dtype=np.uint8)
        there.copy_from(lb.asarray(array))
        copy = repeated_copy(there, lb.asarray(array), array.dtype, writes=True)
        assert (copy is not None and copy.take(array, there, "a copy")) is is_short
        del program


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupted_copy_holds_the_array(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device may read or write it after the interrupt, when the caller has let it go: the long way, and the short.

    It is released once the device is done.
    """
    copies = Copies("global", monkeypatch)
    for _ in range(times - 1):
        copies.iterate(ramp(1))
    copies.session.set_input("x", ramp(1))
    copies.session.run()
    if times > 1:
        copies.session.get_output("y", out=copies.out)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for module in (base, repeated_copy_module):
        monkeypatch.setattr(module, "wait_for_event", interrupt)
    out = np.full(N, -1, np.float32)
    held = weakref.ref(out)
    with pytest.raises(KeyboardInterrupt):
        copies.session.get_output("y", out=out)
    monkeypatch.undo()
    assert out[0] == -1  # the device has not begun
    del out
    gc.collect()
    assert held() is not None
    finish(Device(copies.board, 0))
    gc.collect()
    assert held() is None
    assert copies.iterate(ramp(2)) <= 1
    assert copies.board.violations == []
