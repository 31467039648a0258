"""Event: a point in a queue that can be waited for, through a file descriptor where it has one."""

from __future__ import annotations

import select
from typing import Protocol, runtime_checkable

from landbridge.device.answers import failure, number, refusal, truth
from landbridge.device.waits import waits_of_thread
from landbridge.errors import LandbridgeError


class Event(Protocol):
    """A point in a stream's queue, which the asynchronous methods of a device return."""

    def query(self) -> bool:
        """Returns whether all work before this point has completed."""

    def synchronize(self, timeout: float | None = None) -> bool:
        """Wait at most ``timeout`` seconds (None: for ever), interruptibly; returns whether the work has completed."""


@runtime_checkable
class EventFile(Protocol):
    """An Event with a file descriptor (eventfd, UIO, sync file). Without one, ``synchronize`` does the waiting."""

    def fileno(self) -> int:
        """Returns a descriptor, owned by the event, that polls as readable once the event has completed or failed."""


def event_of(found: object, device: object, method: str) -> Event | None:
    """Returns the Event, or None, that ``method`` of ``device`` returned; raises DeviceError for anything else."""
    if found is None or (callable(getattr(found, "query", None)) and callable(getattr(found, "synchronize", None))):
        return found  # type: ignore[return-value]  # isinstance of a Protocol takes longer than most submissions
    raise refusal(device, method, found, "an Event, with query() and synchronize(), or None where all is done")


def has_completed(event: Event, device: object = "of an event") -> bool:
    """Returns whether ``event`` of ``device`` has completed; raises DeviceError where its query returns no bool."""
    return truth(event.query(), device, "Event.query")


def wait_for_event(
    event: Event,
    timeout: float | None = None,
    device: object = "of an event",
    *,
    work: tuple[object, ...] = ("queued work",),
    queue: object = None,
) -> bool:
    """Wait at most ``timeout`` seconds (None: for ever) for ``event`` of ``device``; returns whether it has completed.

    The wait is interruptible, and polls the event's file where it has one. ``work`` (words) and ``queue`` (None: the
    device's own) describe the wait in the error of a time limit. Raises what ``event.synchronize`` does, and
    DeviceError where a method of the event does not return what it must.
    """
    waits = waits_of_thread()
    if waits is None:
        return _wait(event, timeout, device)
    words: tuple[object, ...] = (*work, device) if isinstance(device, str) else (*work, "on", device)
    with waits.inside(*words, *(() if queue is None or queue == device else (f"({queue})",))):
        return _wait(event, timeout, device)


def _wait(event: Event, timeout: float | None, device: object) -> bool:
    fileno = getattr(event, "fileno", None)  # isinstance with a Protocol would take longer than many a wait
    method = "Event.fileno"
    try:
        if fileno is not None and not has_completed(event, device):
            file = number(fileno(), device, method, "an open file descriptor", 1 << 31)
            files = select.poll()
            files.register(file, select.POLLIN)
            ready = files.poll(None if timeout is None else max(0.0, timeout) * 1e3)
            if any(found & select.POLLNVAL for _, found in ready):
                raise refusal(device, method, file, "an open file descriptor")
            if not ready:
                return False
            timeout = None
        method = "Event.synchronize"
        completed = truth(event.synchronize(timeout), device, method)
    except (LandbridgeError, MemoryError):
        raise
    except Exception as error:
        raise failure(str(device), "a wait", error, method) from error
    if timeout is None and not completed:
        raise refusal(device, method, completed, "True, as no timeout was given")
    return completed
