"""Allocators over another one: Downstream takes its memory there, an Adaptor passes requests on and adds one thing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from landbridge.device.api import Device
from landbridge.memory.allocators.base import Allocator, Block, Queue, QueuedUse, Size
from landbridge.process_bound import ProcessBound


class Downstream(ProcessBound):
    """Takes its memory from ``upstream``, of whose device and scope it is."""

    _instead: ClassVar[str] = "make one where it is used"

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


class Adaptor(Downstream):
    """Passes every request on to ``upstream``."""

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """A block of ``upstream``."""
        return self.upstream.allocate(size, alignment, queue)

    def deallocate(self, block: Block, uses: Sequence[QueuedUse] = ()) -> None:
        """Give ``block`` back to ``upstream``."""
        self.upstream.deallocate(block, uses)
