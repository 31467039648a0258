"""The current device and stream of each thread.

Stream None is a device's one in-order queue, which all threads share.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from landbridge.device.api import Device, Stream
from landbridge.device.registry import device as find_device


class _Current(threading.local):
    def __init__(self) -> None:
        self.device: Device | None = None
        self.streams: dict[Device, Stream | None] = {}


_current = _Current()


def current_device() -> Device:
    """The device this thread allocates on when none is named; ``cpu:0`` unless ``set_device`` says otherwise."""
    if _current.device is None:
        return find_device("cpu")
    return _current.device


@contextmanager
def set_device(device: Device | str) -> Iterator[Device]:
    """Make ``device`` this thread's current one; the previous one is restored on exit."""
    previous = _current.device
    _current.device = found = find_device(device)
    try:
        yield found
    finally:
        _current.device = previous


def current_stream(device: Device) -> Stream | None:
    """This thread's stream of ``device``; None is its in-order queue."""
    return _current.streams.get(device)


@contextmanager
def set_stream(stream: Stream) -> Iterator[Stream]:
    """Make ``stream`` this thread's current one of its device; the previous one is restored on exit."""
    previous = _current.streams.get(stream.device)
    _current.streams[stream.device] = stream
    try:
        yield stream
    finally:
        _current.streams[stream.device] = previous
