"""Base classes of allocators over another one: Downstream takes memory from it, Adaptor passes requests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from landbridge.device.api import Device
from landbridge.memory.allocators.base import Allocator, Block, Queue, QueuedUse, Size
from landbridge.process.process_bound import ProcessBound


class Downstream(ProcessBound):
    """The base of allocators that take their memory from ``upstream``, on its device and scope."""

    _instead: ClassVar[str] = "make one where it is used"

    def __init__(self, upstream: Allocator) -> None:
        self.upstream = upstream

    @property
    def device(self) -> Device:
        """Returns the device whose memory the blocks are."""
        return self.upstream.device

    @property
    def scope(self) -> str:
        """Returns the memory scope of the blocks."""
        return self.upstream.scope


class Adaptor(Downstream):
    """The base of allocators that pass every request on to ``upstream`` and add one thing."""

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """Returns a block of ``upstream``."""
        return self.upstream.allocate(size, alignment, queue)

    def deallocate(self, block: Block, uses: Sequence[QueuedUse] = ()) -> None:
        """Give ``block`` back to ``upstream``."""
        self.upstream.deallocate(block, uses)
