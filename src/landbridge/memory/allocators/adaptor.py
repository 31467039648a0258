"""Adaptor: an allocator around another one that passes everything on; each kind of adaptor adds one thing."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.device.device import Device
from landbridge.memory.allocators.base import Allocator, Block, Queue, Size, Use


class Adaptor:
    """Passes requests on to ``upstream``, of whose device and scope it is."""

    def __init__(self, upstream: Allocator) -> None:
        self.upstream = upstream

    @property
    def device(self) -> Device:
        """Where the blocks lie."""
        return self.upstream.device

    @property
    def scope(self) -> str:
        """The memory scope of the blocks."""
        return self.upstream.scope

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """A block of ``upstream``."""
        return self.upstream.allocate(size, alignment, queue)

    def deallocate(self, block: Block, uses: Sequence[Use] = ()) -> None:
        """Give ``block`` back to ``upstream``."""
        self.upstream.deallocate(block, uses)
