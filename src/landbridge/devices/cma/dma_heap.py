"""Memory of a dma-heap: ``/dev/dma_heap/NAME`` (Linux, include/uapi/linux/dma-heap.h)."""

from __future__ import annotations

import fcntl
import mmap
import os
import re
import struct
from pathlib import Path

from landbridge.devices.cma.capacity import check_capacity, contiguous_areas
from landbridge.devices.cma.source import Piece, unusable
from landbridge.errors import OutOfMemoryError

HEAPS = Path("/dev/dma_heap")

#: ``_IOWR('H', 0, struct dma_heap_allocation_data)``: length, descriptor, its flags, flags of the heap.
_ALLOC = 0xC0184800
_DATA = struct.Struct("=QIIQ")

#: The names of heaps over a reserved area: the kernel's own, and those of vendors' device trees.
_CONTIGUOUS = re.compile(r"cma|reserved")


class DmaHeap:
    """The heap behind ``node``, which gives dma-bufs; these need the kernel's barriers around the host's accesses."""

    unit = page_bytes = mmap.PAGESIZE
    pinned = False  # the interface of heaps promises nothing
    max_bytes = None
    capacity = None
    by_name = False

    def __init__(self, node: Path) -> None:
        self._node = node
        self.name = re.sub(r"\W", "_", node.name)

    @property
    def cached(self) -> bool:
        """Returns False for the heaps that vendors call uncached."""
        return "uncached" not in self._node.name

    @property
    def physically_contiguous(self) -> bool | None:
        """Returns True for heaps over the kernel's contiguous areas; None, unknown, for others."""
        return True if _CONTIGUOUS.search(self._node.name) else None

    def missing(self) -> str | None:
        """Returns why the node cannot be opened; None where it can."""
        return unusable(self._node)

    def allocate(self, nbytes: int, alignment: int) -> Piece:
        """Returns a dma-buf; raises OutOfMemoryError when the heap has none."""
        if not self.physically_contiguous:  # a heap of ordinary pages would take the last of them
            check_capacity(nbytes, str(self._node))
        try:
            heap = os.open(self._node, os.O_RDWR | os.O_CLOEXEC)
            try:
                data = _DATA.pack(nbytes, 0, os.O_RDWR | os.O_CLOEXEC, 0)
                return Piece(_DATA.unpack(fcntl.ioctl(heap, _ALLOC, data))[1])
            finally:
                os.close(heap)
        except OSError as error:
            areas = contiguous_areas() if self.physically_contiguous else None
            why = error.strerror if areas is None else f"{error.strerror}; {areas}"
            raise OutOfMemoryError(f"{self._node} has no {nbytes} bytes: {why}") from error


def dma_heaps(folder: Path = HEAPS) -> list[DmaHeap]:
    """Returns the heaps of ``folder``, contiguous ones first.

    Where there are none, one with the name that every kernel with heaps has, which says what was looked for.
    """
    nodes = sorted(folder.iterdir()) if folder.is_dir() else []
    heaps = [DmaHeap(node) for node in nodes] or [DmaHeap(folder / "system")]
    return sorted(heaps, key=lambda heap: (not heap.physically_contiguous, not heap.cached))
