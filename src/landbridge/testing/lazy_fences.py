"""Fences of a simulated device: its queues wait for files of others, and sign files when their work is done."""

from __future__ import annotations

import os
import select
from threading import Thread

from landbridge.device.api import Stream
from landbridge.errors import LandbridgeError, UnsupportedError
from landbridge.testing.lazy_queue import LazyQueue, Task
from landbridge.testing.lazy_streams import LazyStreams


class LazyFences(LazyStreams):
    """The queues of ``LazyStreams``, with fences."""

    def wait_fence(self, index: int, stream: Stream | None, fence: int) -> None:
        """Holds what is queued from now on until ``fence`` polls as readable; a copy of the descriptor is kept."""
        try:
            file = os.dup(fence)
        except OSError as error:
            raise UnsupportedError(f"{self.name} waits for no descriptor {fence}: {error.strerror}") from error
        self._submit(index, stream, "a fence of others", lambda: os.close(file), ready=lambda: _is_readable(file))

    def signal_fence(self, index: int, stream: Stream | None) -> int:
        """Returns an eventfd. A thread has the queue's work done, as the hardware would, and signs it."""
        task = self._submit(index, stream, "a fence for others", None)
        file = os.eventfd(0, os.EFD_CLOEXEC)
        signed = os.dup(file)
        queue = self._live(index).queue
        Thread(target=_sign, args=(queue, task, signed), name="simulated fence", daemon=True).start()
        return file


def _sign(queue: LazyQueue, task: Task, file: int) -> None:
    try:
        queue.finish((task,))
    except LandbridgeError:  # lost: the fence is signed all the same, and whoever uses the device learns why
        pass
    finally:
        os.eventfd_write(file, 1)
        os.close(file)


def _is_readable(file: int) -> bool:
    return bool(select.select([file], [], [], 0)[0])
