"""ContiguousAllocator: hands out only what is known to be physically contiguous."""

from __future__ import annotations

from landbridge.memory.allocators.adaptor import Adaptor
from landbridge.memory.allocators.base import Block, Queue, Size, bytes_of
from landbridge.memory.contiguity import check_contiguous


class ContiguousAllocator(Adaptor):
    """Passes on blocks of ``upstream`` that are known to be physically contiguous, and refuses all others.

    ``memory_cfg`` of a Session takes it for memory that the Session allocates.
    """

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """Returns a block of ``upstream``; raises ScatteredMemoryError where it is not known to be contiguous."""
        block = self.upstream.allocate(size, alignment, queue)
        try:
            check_contiguous(block, bytes_of(size))
        except BaseException:
            self.upstream.deallocate(block)
            raise
        return block
