"""Fences as objects: descriptors that are none, that end, and that the system does not give."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path
from threading import Thread, Timer
from typing import NoReturn

import pytest

from landbridge.device.fence import Fence
from landbridge.errors import InputError, ResourceLimitError
from landbridge.vm.background import AsyncRun


def test_a_number_that_no_descriptor_has_is_refused() -> None:
    with pytest.raises(InputError, match="is no fence; legal"):
        Fence(1 << 31)


def test_a_file_on_a_disk_is_no_fence(tmp_path: Path) -> None:
    """It polls as readable at any time, so that nothing would be waited for."""
    folder = os.open(tmp_path, os.O_RDONLY)
    with (tmp_path / "frame").open("wb") as file, pytest.raises(InputError, match="always polls as readable"):
        Fence(file)
    with pytest.raises(InputError, match="always polls as readable"):
        Fence(folder)
    os.close(folder)


def test_a_fence_that_is_closed_while_another_thread_waits() -> None:
    with Fence.owning(os.eventfd(0)) as fence:
        Timer(0.02, fence.close).start()
        with pytest.raises(InputError, match="closed"):
            fence.wait(10)


def test_no_more_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    run = AsyncRun()
    monkeypatch.setattr(fcntl, "fcntl", refuse)
    with pytest.raises(ResourceLimitError, match="a Fence was made"):
        Fence(0)
    monkeypatch.setattr(os, "eventfd", refuse)
    with pytest.raises(ResourceLimitError, match="a fence of a run"):
        run.fence()


def test_a_run_that_was_waited_for_has_signalled_its_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    run, write = AsyncRun(), os.eventfd_write

    def late(file: int, value: int) -> None:
        time.sleep(0.02)
        write(file, value)

    monkeypatch.setattr(os, "eventfd_write", late)
    with run.fence() as fence:
        completing = Thread(target=run.complete, args=(None,))
        completing.start()
        run.wait(10)
        assert run.done() and fence.is_signalled()
        completing.join()
