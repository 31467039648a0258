"""Mutants of the barrier that waits for named events alone."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.device.api import Event, Region
from landbridge.device.protocols import AccessMode
from tests.testing.mutants import Correct


class EventsAreNotWaitedFor(Correct):
    """Named events are ignored."""

    caught_by = "test_a_barrier_waits_for_its_events"

    def begin_host_access_after(self, region: Region, nbytes: int, mode: AccessMode, events: Sequence[Event]) -> None:
        self._open(region, nbytes, mode)


class TheFirstEventIsWaitedFor(Correct):
    """Of several events, the first is waited for."""

    caught_by = "test_a_barrier_waits_for_its_events"

    def begin_host_access_after(self, region: Region, nbytes: int, mode: AccessMode, events: Sequence[Event]) -> None:
        for event in events[:1]:
            event.synchronize()
        self._open(region, nbytes, mode)


class BringsBeforeItWaits(Correct):
    """The host's caches are invalidated first, and filled again while the device writes."""

    caught_by = "test_a_barrier_waits_for_its_events"

    def begin_host_access_after(self, region: Region, nbytes: int, mode: AccessMode, events: Sequence[Event]) -> None:
        self._open(region, nbytes, mode)
        for event in events:
            event.synchronize()


class NoEventsNoBarrier(Correct):
    """Without events, the barrier does nothing."""

    caught_by = "test_a_barrier_without_events"

    def begin_host_access_after(self, region: Region, nbytes: int, mode: AccessMode, events: Sequence[Event]) -> None:
        if events:
            super().begin_host_access_after(region, nbytes, mode, events)


class WritersDoNotWait(Correct):
    """Mode w waits for nothing, as it brings nothing."""

    caught_by = "test_writing_waits_for_the_readers_that_are_named"

    def begin_host_access_after(self, region: Region, nbytes: int, mode: AccessMode, events: Sequence[Event]) -> None:
        if mode == "w":
            self._open(region, nbytes, mode)
        else:
            super().begin_host_access_after(region, nbytes, mode, events)


class DrainsTheQueue(Correct):
    """The barrier waits for all that is queued."""

    caught_by = "test_a_barrier_waits_for_nothing_else"

    def begin_host_access_after(self, region: Region, nbytes: int, mode: AccessMode, events: Sequence[Event]) -> None:
        self.stream_sync(region.space.device.index, None)
        super().begin_host_access_after(region, nbytes, mode, events)
