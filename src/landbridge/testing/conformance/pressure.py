"""Tests of memory under pressure: all of it is used, by many threads at once, repeatedly."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from threading import Barrier, Thread
from types import FrameType
from typing import TYPE_CHECKING

from landbridge.device.api import Region, Space
from landbridge.device.protocols import HostMemory
from landbridge.errors import OutOfMemoryError
from landbridge.memory.allocators.keepers import trim
from landbridge.testing.conformance.base import ConformanceCase, expect, expect_raises, pattern

if TYPE_CHECKING:
    from _typeshed import TraceFunction

_THREADS, _SPACES = 8, 40
_EVERY = 100  # instructions: a race of a few of them is then met many times


class PressureConformance(ConformanceCase):
    """Tests faults of an allocator that only show under load."""

    def test_sizes_of_spaces(self) -> None:
        """A space has all the bytes that were asked for, whatever their number, and no neighbour's."""
        multiple = self.device.memory_kind().size_multiple
        sizes = [-(-size // multiple) * multiple for size in (1, 3, 65, 4095, 4097, 20_001)]
        spaces = [self.alloc(size) for size in sizes]
        for number, (size, space) in enumerate(zip(sizes, spaces, strict=True)):
            self.write(space, pattern(size, number))
        for number, (size, space) in enumerate(zip(sizes, spaces, strict=True)):
            found = self.read(space, size)
            expect(found == pattern(size, number), f"a space of {size} bytes lost what was written there")

    def test_spaces_of_no_bytes(self) -> None:
        """A space may have 0 bytes: it is one like any other, freed once."""
        first, second = (self.api.alloc_data_space(self.device.index, 0, 1, "global", None) for _ in range(2))
        other = self.alloc(64)
        self.write(other, pattern(64, 1))
        self.api.free_data_space(first)
        self.api.free_data_space(second)
        expect(self.read(other, 64) == pattern(64, 1), "freeing spaces of 0 bytes changed another")

    def test_spaces_compare(self) -> None:
        """A handle is opaque: a Space equals itself, and no other that lives."""
        first, second = self.alloc(64), self.alloc(64)
        space = Space(first.device, first.scope, first.handle)
        expect(first == space and first != second, "two spaces that live are equal, or one is not equal to itself")
        expect(len({first, second}) == 2, "spaces cannot be told apart in a set")

    def test_alignment_of_many(self) -> None:
        """Every allocation has its alignment, above a page too, whatever was allocated before it."""
        host = self.ability(HostMemory)
        for kind in self.host_kinds():
            for requested in (1, 1 << 12, 1 << 13, 1 << 15):
                wanted = max(requested, kind.alignment)
                for odd in (1, 4097, 8191, 12289):
                    spaces = self.alloc(odd, kind.scope), self.alloc(odd, kind.scope, requested)
                    address = host.host_pointer(spaces[1])
                    for space in spaces:
                        self.free(space)
                    expect(address % wanted == 0, f"{address:#x} of {kind.scope!r} was asked aligned to {requested}")

    def test_capacity(self) -> None:
        """capacity: so many bytes of the scope can be had at once, each allocation of max_bytes at most."""
        for scope in self.flat_scopes():
            kind = self.device.memory_kind(scope)
            if kind.capacity is None or kind.capacity > 1 << 28:
                continue
            gc.collect()
            trim(self.device)  # memory that pools of this process retain is no fault of the device
            capacity = self.capacity(scope) * 7 // 8
            step = min(kind.max_bytes or capacity, capacity // 4) // kind.size_multiple * kind.size_multiple
            spaces = []
            for _ in range(capacity // step if step else 0):
                try:
                    self.fills_memory = True
                    spaces.append(self.alloc(step, scope))
                except OutOfMemoryError as error:
                    had = len(spaces) * step
                    raise AssertionError(
                        f"{scope!r} has a capacity of {kind.capacity}, and {had} can be had"
                    ) from error
            for space in spaces:
                self.free(space)

    def test_after_out_of_memory(self) -> None:
        """An allocation that fails takes nothing: what was there stays whole, and what is freed can be had again."""
        self.fills_memory = True
        step = self._sixteenth()
        spaces = self._all(step)
        for number, space in enumerate(spaces):
            self.write(space, pattern(256, number))
            self.write(space, pattern(256, number + 1), step - 256)
        for _ in range(20):
            call = lambda: self.alloc(step)  # noqa: E731
            expect_raises(OutOfMemoryError, call, "an allocation where there is no memory left")
        for number, space in enumerate(spaces):
            lost = "a space lost its bytes when there was no memory for another"
            expect(self.read(space, 256) == pattern(256, number), lost)
            expect(self.read(space, 256, step - 256) == pattern(256, number + 1), lost)
        for space in spaces[: len(spaces) // 2]:
            self.free(space)
        for _ in range(len(spaces) // 2):
            self.alloc(step)

    def test_allocation_by_many_threads(self) -> None:
        """Methods may be called from any thread: no two get the same bytes, and none are lost."""
        size = -(-256 // self.device.memory_kind().size_multiple) * self.device.memory_kind().size_multiple
        taken: list[list[Space]] = [[] for _ in range(_THREADS)]

        def take(owned: list[Space]) -> None:
            for number in range(_SPACES):
                owned.append(self.alloc(size))
                if number % 4 == 3:
                    self.free(owned.pop(0))

        def give_back(owned: list[Space]) -> None:
            for space in owned:
                self.free(space)

        before = self.available()
        self._at_once([partial(take, owned) for owned in taken])
        spaces = [space for owned in taken for space in owned]
        for number, space in enumerate(spaces):
            self.write(space, pattern(size, number))
        for number, space in enumerate(spaces):
            expect(self.read(space, size) == pattern(size, number), "two threads were given the same bytes")
        self._at_once([partial(give_back, owned) for owned in taken])
        after = self.available()
        if before is not None and not self.is_host():
            expect(after == before, f"of {before} bytes {after} are available after all spaces were freed")

    def test_copies_by_many_threads(self) -> None:
        """Methods may be called from any thread: copies that threads queue at once all happen."""
        pairs = [(self.alloc(1024), self.alloc(1024)) for _ in range(_THREADS)]
        for number, (source, _) in enumerate(pairs):
            self.write(source, pattern(1024, number))

        def copy(source: Space, target: Space) -> None:
            for part in range(0, 1024, 64):
                self.wait(self.copy(Region(source, part), Region(target, part), 64))

        self._at_once([partial(copy, *pair) for pair in pairs])
        for number, (_, target) in enumerate(pairs):
            expect(self.read(target, 1024) == pattern(1024, number), "copies of several threads were lost or mixed up")

    def _sixteenth(self) -> int:
        kind = self.device.memory_kind()
        if kind.capacity is None or kind.capacity > 1 << 28:
            self.skip("has more memory than a test should use up")
        step = min(kind.max_bytes or kind.capacity, kind.capacity // 16)
        return step // kind.size_multiple * kind.size_multiple

    def _all(self, step: int) -> list[Space]:
        """Allocates spaces of ``step`` bytes until memory is exhausted; returns them."""
        spaces: list[Space] = []
        while len(spaces) <= 64:
            try:
                spaces.append(self.alloc(step))
            except OutOfMemoryError:
                return spaces
        raise AssertionError(f"{len(spaces)} times {step} bytes were had, more than the capacity of the scope")

    def _at_once(self, work: list[Callable[[], object]]) -> None:
        """Runs each of ``work`` in its own thread, all starting together; fails with what they raise."""
        failures: list[str] = []
        start = Barrier(len(work))

        def run(number: int, one: Callable[[], object]) -> None:
            start.wait()
            try:
                with _interrupted(number):
                    one()
            except Exception as error:
                failures.append(f"{type(error).__name__}: {error}")

        with _eager_switches():
            threads = [Thread(target=run, args=job, daemon=True) for job in enumerate(work)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        expect(not failures, "; ".join(sorted(set(failures))))


@contextmanager
def _eager_switches() -> Iterator[None]:
    """Makes Python switch threads so often that unguarded code is interrupted in the middle."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def _interrupted(seed: int) -> Iterator[None]:
    """Interrupts this thread between any two instructions of Python code, one time in ``_EVERY``, for other threads."""
    chance = Random(seed)

    def step(frame: FrameType, event: str, argument: object) -> TraceFunction:
        frame.f_trace_opcodes = True
        if chance.randrange(_EVERY) == 0:
            time.sleep(0)  # which releases the lock of the interpreter
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        yield
    finally:
        sys.settrace(before)
