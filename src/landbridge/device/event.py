"""Event: a point in a queue that can be waited for, by a file where it has one."""

from __future__ import annotations

import select
from typing import Protocol, runtime_checkable


class Event(Protocol):
    """A point in a stream's queue, as the asynchronous methods of a device return it."""

    def query(self) -> bool:
        """Whether everything before this point has completed."""

    def synchronize(self, timeout: float | None = None) -> bool:
        """Wait at most ``timeout`` seconds (None: for ever), interruptibly; whether it has completed."""


@runtime_checkable
class EventFile(Protocol):
    """An Event with a file (eventfd, UIO, sync file). Absent: it is waited for by its ``synchronize`` alone."""

    def fileno(self) -> int:
        """A file descriptor that polls as readable from when the event has completed or failed; the event's own."""


def wait_for_event(event: Event, timeout: float | None = None) -> bool:
    """Wait at most ``timeout`` seconds (None: for ever), interruptibly; whether ``event`` has completed.

    One that has a file is waited for by a poll of it. Raises what ``event.synchronize`` does.
    """
    fileno = getattr(event, "fileno", None)  # asking isinstance of a Protocol would take longer than many a wait
    if fileno is not None and not event.query():
        files = select.poll()
        files.register(fileno(), select.POLLIN)
        if not files.poll(None if timeout is None else max(0.0, timeout) * 1e3):
            return False
        timeout = None
    return event.synchronize(timeout)
