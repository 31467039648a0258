"""SizeClassAllocator: buffers that are kept by the class of their size, and never cut."""

from __future__ import annotations

from collections.abc import Hashable

from landbridge.errors import OutOfMemoryError
from landbridge.memory.allocators.base import Allocator, Block, Queue, Size, flat_bytes, round_up
from landbridge.memory.allocators.whole_blocks import WholeBlockAllocator

_EXACT = 16  # units up to which each number of them is a class; from there on, eight classes for each doubling


class SizeClassAllocator(WholeBlockAllocator):
    """One buffer of ``upstream`` for each block: no two share one, and one that came back serves its size class.

    For memory whose barriers have no range, such as dma-bufs. A class is at most an eighth larger than what was asked,
    in whole units that the scope aligns to; where memory runs out, a buffer is no larger than asked.
    """

    def __init__(self, upstream: Allocator) -> None:
        super().__init__(upstream)
        kind = upstream.device.memory_kind(upstream.scope)
        self._unit, self._most = kind.block_granule, kind.max_bytes

    def key_of(self, size: Size) -> Hashable:
        """Bytes of a buffer of the class; raises InputError for an ``NdSize``."""
        return self._class_bytes(flat_bytes(size, self))

    def fresh(self, size: Size, alignment: int, queue: Queue | None) -> tuple[Block, bool]:
        """A buffer of the class, or of what was asked where there is none."""
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
    """The bytes of the smallest class that holds ``nbytes``: a multiple of ``unit``."""
    units = max(1, -(-nbytes // unit))
    step = 1 if units <= _EXACT else 1 << (units - 1).bit_length() - 4
    return round_up(units, step) * unit
