"""DeviceLane: records when each launch on a device began and ended, for a trace, while the host goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

from landbridge.device.api import Event, wait_for_event
from landbridge.executable.device_image import Launch
from landbridge.process.background_threads import start

#: A function that gets a launch, and its begin and end in nanoseconds of ``time.perf_counter_ns``.
Done = Callable[[Launch, int, int], None]


class DeviceLane:
    """Waits for launches in a thread of its own, in their order, and calls ``done`` for each.

    A launch begins when it is submitted, or when the one before it ends, whichever is later, as a device works in
    order. Call ``close`` once the run is over; it returns after the last call of ``done``.
    """

    def __init__(self, done: Done) -> None:
        self._done = done
        self._submitted: SimpleQueue[tuple[Launch, Event | None, int, int] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        start(self._thread)

    def submitted(self, launch: Launch, event: Event | None, began: int) -> None:
        """Record a launch that was submitted at ``began``; it is done when ``event`` is, or now."""
        self._submitted.put((launch, event, began, time.perf_counter_ns()))

    def close(self) -> None:
        """Wait until ``done`` was called for all launches."""
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
