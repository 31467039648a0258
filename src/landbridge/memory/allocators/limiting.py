"""LimitingAllocator: refuses requests beyond a limit of bytes."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.errors import InputError, OutOfMemoryError
from landbridge.memory.allocators.adaptor import Adaptor
from landbridge.memory.allocators.base import Allocator, Block, Queue, QueuedUse, Size, bytes_of
from landbridge.process.locks import new_lock


class LimitingAllocator(Adaptor):
    """Allows at most ``limit`` bytes of blocks of ``upstream`` at a time, counted as upstream rounds them."""

    def __init__(self, upstream: Allocator, limit: int) -> None:
        super().__init__(upstream)
        if limit < 0:
            raise InputError(f"a limit of {limit} bytes is not legal; give at least 0")
        self.limit = limit
        self._used = 0
        self._lock = new_lock()  # finalizers give blocks back too, also while this thread is in allocate

    @property
    def used_bytes(self) -> int:
        """Returns the bytes of the blocks that are out now."""
        return self._used

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """Returns a block of ``upstream``; raises OutOfMemoryError at the limit."""
        nbytes = max(bytes_of(size), 1)  # a request that cannot be met must not reach upstream
        if self._used + nbytes > self.limit:
            raise self._refusal(nbytes)
        block = self.upstream.allocate(size, alignment, queue)
        with self._lock:
            fits = self._used + block.nbytes <= self.limit
            if fits:
                self._used += block.nbytes
        if not fits:
            self.upstream.deallocate(block)
            raise self._refusal(block.nbytes)
        return block

    def deallocate(self, block: Block, uses: Sequence[QueuedUse] = ()) -> None:
        """Give ``block`` back to ``upstream`` and count its bytes as free."""
        self.upstream.deallocate(block, uses)
        with self._lock:
            self._used -= block.nbytes

    def _refusal(self, nbytes: int) -> OutOfMemoryError:
        return OutOfMemoryError(
            f"{self.device} {self.scope}: {nbytes} bytes requested, {self._used} of the limit of {self.limit} bytes "
            "are "
            "in use; free tensors or raise the limit"
        )
