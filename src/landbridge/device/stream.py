"""The current device and stream of each thread.

Stream None is a device's own in-order queue, which all threads share.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from landbridge.device.api import Device, Stream, Streams
from landbridge.device.registry import device as find_device
from landbridge.device.waits import Waits, waits_of_thread


class _Current(threading.local):
    def __init__(self) -> None:
        self.device: Device | None = None
        self.streams: dict[Device, Stream | None] = {}


_current = _Current()


def current_device() -> Device:
    """Returns the device that this thread allocates on by default: ``cpu:0`` unless ``set_device`` changed it."""
    if _current.device is None:
        return find_device("cpu")
    return _current.device


def chosen_device() -> Device | None:
    """Returns the device that ``set_device`` made this thread's current one; None outside of one."""
    return _current.device


@contextmanager
def set_device(device: Device | str) -> Iterator[Device]:
    """Make ``device`` this thread's current one until the end of the ``with``, which restores the previous one."""
    previous = _current.device
    _current.device = found = find_device(device)
    try:
        yield found
    finally:
        _current.device = previous


def current_stream(device: Device) -> Stream | None:
    """Returns this thread's current stream of ``device``; None is the device's in-order queue."""
    return _current.streams.get(device)


@contextmanager
def set_stream(stream: Stream) -> Iterator[Stream]:
    """Make ``stream`` this thread's current one of its device: copies and runs are submitted there.

    The end of the ``with`` restores the previous one. The driver is told of both.
    """
    device = stream.device
    previous = _current.streams.get(device)
    _make_current(device, stream)
    try:
        yield stream
    finally:
        _make_current(device, previous)


def _make_current(device: Device, stream: Stream | None) -> None:
    streams = device.capability(Streams)
    if streams is not None and not device.is_lost:
        with device.state.watching(method="set_stream"):
            streams.set_stream(device.index, stream)
    _current.streams[device] = stream


def carried(action: Callable[[], object]) -> Callable[[], object]:
    """Returns ``action`` for another thread, where it runs with this thread's current device and streams.

    Its waits are recorded where this thread's are.
    """
    device, streams, waits = _current.device, _current.streams.copy(), waits_of_thread()
    if waits is not None:
        action = _watched_by(waits, action)
    if device is None and not any(streams.values()):
        return action

    def there() -> None:
        before = _current.device, _current.streams
        _current.device, _current.streams = device, streams
        try:
            action()
        finally:
            _current.device, _current.streams = before

    return there


def _watched_by(waits: Waits, action: Callable[[], object]) -> Callable[[], object]:
    def watched() -> None:
        with waits.watched():
            action()

    return watched
