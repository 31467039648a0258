"""SizeClassAllocator: retains buffers by size class, and never cuts them."""

from __future__ import annotations

from collections.abc import Hashable

from landbridge.errors import OutOfMemoryError
from landbridge.memory.allocators.base import Allocator, Block, Queue, Size, flat_bytes, round_up
from landbridge.memory.allocators.whole_blocks import WholeBlockAllocator

_EXACT = 16  # up to this many units each count is a class of its own; above it, each doubling has eight classes


class SizeClassAllocator(WholeBlockAllocator):
    """Takes one buffer of ``upstream`` for each block; a returned buffer serves requests of its size class.

    It is for memory whose barriers have no range, such as dma-bufs. A class is at most an eighth larger than the
    request, in whole units of the scope's alignment. When memory runs out, a buffer is no larger than the request.
    """

    def __init__(self, upstream: Allocator) -> None:
        super().__init__(upstream)
        kind = upstream.device.memory_kind(upstream.scope)
        self._unit, self._most = kind.block_granule, kind.max_bytes

    def key_of(self, size: Size) -> Hashable:
        """Returns the bytes of a buffer of the request's class; raises InputError for an ``NdSize``."""
        return self._class_bytes(flat_bytes(size, self))

    def fresh(self, size: Size, alignment: int, queue: Queue | None) -> tuple[Block, bool]:
        """Returns a new buffer of the request's class, or of just the request where memory runs out."""
        requested = round_up(flat_bytes(size, self) or 1, self._unit)
        wanted = self._class_bytes(requested)
        try:
            return self.upstream.allocate(wanted, alignment, queue), True
        except OutOfMemoryError:
            if wanted == requested:
                raise
        return self.upstream.allocate(requested, alignment, queue), False

    def _class_bytes(self, nbytes: int) -> int:
        found = size_class(nbytes, self._unit)
        return found if self._most is None or found <= self._most else round_up(nbytes or 1, self._unit)


def size_class(nbytes: int, unit: int) -> int:
    """Returns the bytes of the smallest class that holds ``nbytes``: a multiple of ``unit``."""
    units = max(1, -(-nbytes // unit))
    step = 1 if units <= _EXACT else 1 << (units - 1).bit_length() - 4
    return round_up(units, step) * unit
