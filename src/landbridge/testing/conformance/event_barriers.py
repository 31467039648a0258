"""Tests of barriers that name the events they wait for."""

from __future__ import annotations

import ctypes
import time

from landbridge.device.api import Event, Region, Space
from landbridge.device.protocols import AccessMode, EventBarriers, HostBarriers
from landbridge.testing.conformance.base import ConformanceCase, expect, pattern

_BYTES = 4096
_ODD = ((0, 64), (77, 130), (_BYTES - 100, 100))
_READING: tuple[AccessMode, ...] = ("r", "rw")
_WRITING: tuple[AccessMode, ...] = ("w", "rw")


class EventBarrierConformance(ConformanceCase):
    """Tests ``begin_host_access_after``, the barrier that waits for named events alone."""

    def test_a_barrier_waits_for_its_events(self) -> None:
        """begin_host_access_after: the host sees what the named events wrote, and that none of them is pending."""
        for kind in self.host_kinds():
            for mode in _READING:
                for start, nbytes in _ODD:
                    space = self._with_old_lines(kind.scope, 1)
                    events = [self.busy(), self._queued_write(space, 2)]
                    found = self._read_between(space, start, nbytes, mode, events)
                    subject = f"after a barrier {mode!r} for {nbytes} bytes at {start} in {kind.scope!r}"
                    pending = [event for event in events if event is not None and not event.query()]
                    expect(not pending, f"{subject} an event that it names is pending")
                    expect(found == pattern(_BYTES, 2)[start : start + nbytes], f"{subject} the host reads old bytes")
                    self.free(space)

    def test_a_barrier_without_events(self) -> None:
        """Without events, begin_host_access_after brings what was written by work that was waited for before."""
        for kind in self.host_kinds():
            space = self._with_old_lines(kind.scope, 1)
            self.wait(self._queued_write(space, 2))
            found = self._read_between(space, 0, _BYTES, "r", [])
            expect(found == pattern(_BYTES, 2), f"a barrier of {kind.scope!r} without events brought old bytes")

    def test_writing_waits_for_the_readers_that_are_named(self) -> None:
        """begin_host_access_after w and rw: what was queued before, and is named, reads the old bytes."""
        barriers, ends = self.ability(EventBarriers), self.ability(HostBarriers)
        for kind in self.host_kinds():
            for mode in _WRITING:
                space, target = self._with_old_lines(kind.scope, 1), self.alloc(_BYTES)
                self.busy()
                event = self.copy(Region(space), Region(target), _BYTES)
                barriers.begin_host_access_after(Region(space), _BYTES, mode, _named(event))
                ctypes.memset(self.host_address(space), 0x5A, _BYTES)
                ends.end_host_access(Region(space), _BYTES, mode)
                self.wait(event)
                found = self.read(target, _BYTES)
                expect(found == pattern(_BYTES, 1), f"a copy that a barrier {mode!r} named read what came after it")
                target = self.alloc(_BYTES)
                self.wait(self.copy(Region(space), Region(target), _BYTES))
                found = self.read(target, _BYTES)
                expect(found == b"\x5a" * _BYTES, f"the device does not see what an access {mode!r} wrote")

    def test_a_barrier_waits_for_nothing_else(self) -> None:
        """begin_host_access_after waits for no work that it does not name, whenever that was queued."""
        barriers, ends = self.ability(EventBarriers), self.ability(HostBarriers)
        kind = self.host_kind()

        def waited(nbytes: int) -> float | None:
            """Returns the seconds that the barrier took, as a share of what other work took."""
            space = self._with_old_lines(kind.scope, 1)
            event = self._queued_write(space, 2)
            other = self.pending(nbytes)
            if other is None:
                return None
            begun = time.perf_counter()
            barriers.begin_host_access_after(Region(space), _BYTES, "r", _named(event))
            spent = time.perf_counter() - begun
            ends.end_host_access(Region(space), _BYTES, "r")
            other.synchronize(None)
            return spent / (time.perf_counter() - begun)

        self.expect_at_once(waited, "a barrier that does not name it")

    def _with_old_lines(self, scope: str, seed: int) -> Space:
        """Returns a space that the device filled with a pattern, which the host's caches hold since it was read."""
        self.ability(EventBarriers)
        space = self.alloc(_BYTES, scope)
        self.wait(self._queued_write(space, seed))
        self._read_between(space, 0, _BYTES, "r", [])
        return space

    def _queued_write(self, space: Space, seed: int) -> Event | None:
        """Queues a copy of pattern ``seed`` to ``space``."""
        staged = self.alloc(_BYTES)
        self.write(staged, pattern(_BYTES, seed))
        return self.copy(Region(staged), Region(space), _BYTES)

    def _read_between(
        self, space: Space, start: int, nbytes: int, mode: AccessMode, events: list[Event | None]
    ) -> bytes:
        barriers, ends = self.ability(EventBarriers), self.ability(HostBarriers)
        barriers.begin_host_access_after(Region(space, start), nbytes, mode, _named(*events))
        found = ctypes.string_at(self.host_address(space) + start, nbytes)
        ends.end_host_access(Region(space, start), nbytes, mode)
        return found


def _named(*events: Event | None) -> list[Event]:
    """Returns those that are not done on return."""
    return [event for event in events if event is not None]
