"""The lane of a device in a trace: when each launch that it was given began and ended, while the host goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

from landbridge.background_threads import start
from landbridge.device.api import Event, wait_for_event
from landbridge.executable.device_image import Launch

#: Told of a launch, and when it began and ended, in nanoseconds of ``time.perf_counter_ns``.
Done = Callable[[Launch, int, int], None]


class DeviceLane:
    """Waits for launches in a thread of its own, in their order, and tells ``done`` of each.

    A launch begins when it is submitted, or when the one before it ends, whichever is later: a device does what it is
    given in order. ``close`` once the run is over, which returns when all is told.
    """

    def __init__(self, done: Done) -> None:
        self._done = done
        self._submitted: SimpleQueue[tuple[Launch, Event | None, int, int] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        start(self._thread)

    def submitted(self, launch: Launch, event: Event | None, began: int) -> None:
        """A launch was submitted from ``began`` on; it is done when ``event`` is, or now."""
        self._submitted.put((launch, event, began, time.perf_counter_ns()))

    def close(self) -> None:
        """Return once ``done`` was told of all."""
        self._submitted.put(None)
        self._thread.join()

    def _watch(self) -> None:
        last = 0
        while (found := self._submitted.get()) is not None:
            launch, event, began, ended = found
            if event is not None:
                with suppress(Exception):  # the run raises it
                    wait_for_event(event)
                ended = time.perf_counter_ns()
            self._done(launch, max(began, last), ended)
            last = ended
