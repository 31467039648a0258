"""FailureCallbackAllocator: calls back when memory runs out, so that the program can free some."""

from __future__ import annotations

from collections.abc import Callable

from landbridge.errors import OutOfMemoryError
from landbridge.memory.allocators.adaptor import Adaptor
from landbridge.memory.allocators.base import Allocator, Block, Queue, Size, bytes_of


class FailureCallbackAllocator(Adaptor):
    """Calls ``callback(nbytes)`` when ``upstream`` has no memory, and retries as long as the callback returns True."""

    def __init__(self, upstream: Allocator, callback: Callable[[int], bool]) -> None:
        super().__init__(upstream)
        self._callback = callback

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """Returns a block of ``upstream``; raises its OutOfMemoryError once the callback gives up."""
        while True:
            try:
                return self.upstream.allocate(size, alignment, queue)
            except OutOfMemoryError:
                if not self._callback(bytes_of(size)):
                    raise
