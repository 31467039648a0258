"""The handles of ``sim:lazy``: blocks, streams, and the instance they belong to."""

from __future__ import annotations

from collections import deque
from random import Random

import numpy as np

from landbridge.testing.lazy_queue import LazyQueue, Task

#: What bytes hold that nobody wrote, and that were freed.
POISON = 0xA5


class LazyInstance:
    """One simulated device between two losses."""

    def __init__(self, index: int, seed: int) -> None:
        self.index = index
        self.queue = LazyQueue(Random(2 * seed + index))
        self.used_bytes = 0
        self.freed: deque[LazyBlock] = deque()


class LazyBlock:
    """The handle of a Space: ``nbytes`` bytes whose address only the device knows."""

    def __init__(self, instance: LazyInstance, scope: str, nbytes: int, alignment: int) -> None:
        self.instance = instance
        self.scope = scope
        whole = np.full(nbytes + alignment, POISON, np.uint8)
        skip = -whole.ctypes.data % alignment
        self.data = whole[skip : skip + nbytes]
        self.address: int = self.data.ctypes.data
        self.alive = True
        self.host_accesses = 0

    def __repr__(self) -> str:
        return f"block of {self.data.nbytes} bytes of {self.scope!r}"


class StreamHandle:
    """The handle of a Stream."""

    def __init__(self, instance: LazyInstance) -> None:
        self.instance = instance
        self.alive = True


class Hold:
    """Work that does not finish until ``release``; for tests of timeouts."""

    def __init__(self, queue: LazyQueue, task: Task) -> None:
        self._queue = queue
        self._task = task

    def release(self) -> None:
        """Lets the stream continue."""
        self._queue.release(self._task)
