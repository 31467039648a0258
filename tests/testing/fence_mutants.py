"""Mutants of fences."""

from __future__ import annotations

import os
import select

from landbridge.device.api import Stream
from tests.testing.mutants import Correct


class WaitsForNoFence(Correct):
    """wait_fence takes the fence, and nothing waits for it."""

    caught_by = "test_work_waits_for_a_fence"

    def wait_fence(self, index: int, stream: Stream | None, fence: int) -> None:
        pass


class FencesOfOneQueue(Correct):
    """wait_fence holds stream None, whichever it is asked for."""

    caught_by = "test_work_waits_for_a_fence"

    def wait_fence(self, index: int, stream: Stream | None, fence: int) -> None:
        super().wait_fence(index, None, fence)


class WaitsForNumbersOfFiles(Correct):
    """The device keeps the number of the descriptor, which its caller closes."""

    caught_by = "test_work_waits_for_a_fence"

    def wait_fence(self, index: int, stream: Stream | None, fence: int) -> None:
        self._submit(index, stream, "a fence of others", None, ready=lambda: _is_readable_or_gone(fence))


class WaitsWhereItIsCalled(Correct):
    """wait_fence blocks until the fence is signalled."""

    caught_by = "test_a_wait_for_a_fence_returns_at_once"

    def wait_fence(self, index: int, stream: Stream | None, fence: int) -> None:
        select.select([fence], [], [])


class FencesAreSignalledAtOnce(Correct):
    """The fence of signal_fence is signalled from the start."""

    caught_by = "test_a_fence_says_when_work_is_done"

    def signal_fence(self, index: int, stream: Stream | None) -> int:
        return os.eventfd(1)


class FencesAreNeverSignalled(Correct):
    """The fence of signal_fence is signalled when somebody waits for the queue, and by nothing else."""

    caught_by = "test_a_fence_says_when_work_is_done"

    def signal_fence(self, index: int, stream: Stream | None) -> int:
        file = os.eventfd(0)
        self._submit(index, stream, "a fence for others", lambda: os.eventfd_write(file, 1))
        return file


class FencesOfTheOtherQueue(Correct):
    """signal_fence is of stream None, whichever it is asked for."""

    caught_by = "test_a_fence_says_when_work_is_done"

    def signal_fence(self, index: int, stream: Stream | None) -> int:
        return super().signal_fence(index, None)


def _is_readable_or_gone(file: int) -> bool:
    try:
        return bool(select.select([file], [], [], 0)[0])
    except (OSError, ValueError):
        return True
