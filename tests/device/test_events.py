"""Waits for events: by their files where they have one, within a timeout, and what they raise."""

from __future__ import annotations

import os
import threading
import time

import pytest

from landbridge.device.api import EventFile, wait_for_event
from landbridge.errors import DeviceError


class WithFile:
    """An event that an eventfd tells of; waiting for it otherwise is refused before it has completed."""

    def __init__(self, error: Exception | None = None) -> None:
        self.file = os.eventfd(0)
        self.completed = False
        self.error = error

    def complete(self) -> None:
        self.completed = True
        os.eventfd_write(self.file, 1)

    def query(self) -> bool:
        return self.completed

    def synchronize(self, timeout: float | None = None) -> bool:
        assert self.completed, "the file says when"
        if self.error is not None:
            raise self.error
        return True

    def fileno(self) -> int:
        return self.file


def test_an_event_with_a_file_is_polled() -> None:
    event = WithFile()
    assert isinstance(event, EventFile)
    began = time.monotonic()
    assert not wait_for_event(event, 0.02)
    assert time.monotonic() - began >= 0.02
    assert not wait_for_event(event, 0)
    threading.Timer(0.05, event.complete).start()
    assert wait_for_event(event)
    assert wait_for_event(event, 0)


def test_what_a_failed_event_raises() -> None:
    event = WithFile(DeviceError("bus error"))
    event.complete()
    with pytest.raises(DeviceError, match="bus error"):
        wait_for_event(event)


def test_an_event_without_a_file_waits_itself() -> None:
    class Plain:
        requested: list[float | None] = []  # noqa: RUF012

        def query(self) -> bool:
            return False

        def synchronize(self, timeout: float | None = None) -> bool:
            self.requested.append(timeout)
            return False

    assert not wait_for_event(Plain(), 0.5)
    assert Plain.requested == [0.5]
