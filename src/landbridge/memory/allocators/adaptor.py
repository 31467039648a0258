"""Adaptor: an allocator around another one that passes everything on; each kind of adaptor adds one thing."""

from __future__ import annotations

from landbridge.device.device import Device
from landbridge.memory.allocators.base import Allocator, Block, Trimmable


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

    def allocate(self, nbytes: int, alignment: int) -> Block:
        """A block of ``upstream``."""
        return self.upstream.allocate(nbytes, alignment)

    def deallocate(self, block: Block) -> None:
        """Give ``block`` back to ``upstream``."""
        self.upstream.deallocate(block)

    def trim(self) -> int:
        """Have ``upstream`` give back what it holds unused, if it keeps any; returns the bytes given back."""
        return self.upstream.trim() if isinstance(self.upstream, Trimmable) else 0
