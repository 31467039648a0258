"""Memory of the module u-dma-buf: ``/dev/NAME``, with a folder of sysfs for its address and its barriers.

Each node is one contiguous buffer (github.com/ikwzm/udmabuf, Readme.md). It differs from ``/dev/udmabuf``.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from landbridge.device.memory_provider import Caching, Side
from landbridge.device.protocols import AccessMode
from landbridge.devices.cma.carve_out import CarveOut
from landbridge.devices.cma.source import Piece, unusable
from landbridge.errors import DeviceError, OutOfMemoryError
from landbridge.process.locks import new_lock

CLASS = Path("/sys/class/u-dma-buf")
NODES = Path("/dev")

#: By ``sync_mode`` modulo 4: how the host reaches the memory with ``O_SYNC`` or, from 4 on, without it.
_CACHING = (Caching.CACHED, Caching.UNCACHED, Caching.WRITE_COMBINED, Caching.UNCACHED)
_ALWAYS = 4

#: The largest cache line of processors that have the module; barriers of more than a line are legal.
_LINE = 128

#: The direction of a barrier: ``DMA_TO_DEVICE`` and ``DMA_FROM_DEVICE`` of the kernel.
_TO_DEVICE, _FROM_DEVICE = 1, 2


class UDmaBuf:
    """The node ``name``; ``uncached`` opens it with ``O_SYNC``, whose meaning its ``sync_mode`` decides.

    Its sysfs files act as registers: one process at a time may use a node.
    """

    unit = page_bytes = mmap.PAGESIZE
    physically_contiguous = True
    pinned = True
    by_name = False

    def __init__(self, name: str, *, uncached: bool = False, folder: Path = CLASS, nodes: Path = NODES) -> None:
        self.name = "".join(letter if letter.isalnum() else "_" for letter in name)
        self._files, self._node, self._uncached = folder / name, nodes / name, uncached
        self._lock = new_lock()
        self._memory: CarveOut | None = None

    @property
    def caching(self) -> Caching:
        """Returns how the host reaches the memory, as the module documents it for ``sync_mode`` and ``O_SYNC``."""
        mode = self._number("sync_mode", 1)
        return _CACHING[mode % _ALWAYS] if self._uncached or mode & _ALWAYS else Caching.CACHED

    @property
    def cached(self) -> bool:
        """Returns whether the host reaches the memory through its caches."""
        return self.caching is Caching.CACHED

    @property
    def capacity(self) -> int | None:
        """Returns the content of the file ``size``, in bytes."""
        return self._number("size", 0)

    @property
    def max_bytes(self) -> int | None:
        """Returns the bytes of the whole buffer."""
        return self.capacity

    def missing(self) -> str | None:
        """Returns why the node cannot be opened, or that it does not give its address; None where it can be used."""
        if not self._files.is_dir():
            return f"{self._files}: no node of the module u-dma-buf"
        if not (self._number("phys_addr", 0) and self.capacity):
            return f"{self._files}/phys_addr or {self._files}/size cannot be read"
        return unusable(self._node)

    def allocate(self, nbytes: int, alignment: int) -> Piece:
        """Returns a part of the buffer; raises OutOfMemoryError."""
        with self._lock:
            if self._memory is None:
                self._memory = self._open()
        return self._memory.take(nbytes, alignment)

    def _open(self) -> CarveOut:
        address, size, caching = self._number("phys_addr", 0), self._number("size", 0), self.caching
        if not address or not size:
            raise OutOfMemoryError(f"{self._files} says no address or size any more; is the node still there?")
        needs_barriers = caching is Caching.CACHED and not self._number("dma_coherent", 0)
        flags = os.O_SYNC if self._uncached else 0
        sync = self._sync if needs_barriers else None
        return CarveOut(self._node, flags, 0, address, size, caching, sync, _LINE if needs_barriers else 1)

    def _sync(self, offset: int, nbytes: int, mode: AccessMode, side: Side) -> None:
        """Call the module's barrier for a range, unless the host only read or is about to write everything."""
        if (side == "device" and mode == "r") or (side == "host" and mode == "w"):
            return
        direction, command = (_FROM_DEVICE, "sync_for_cpu") if side == "host" else (_TO_DEVICE, "sync_for_device")
        try:
            with self._lock:  # four files that must be written together
                for file, value in (("offset", offset), ("size", nbytes), ("direction", direction)):
                    (self._files / f"sync_{file}").write_text(str(value))
                (self._files / command).write_text("1")
        except OSError as error:
            raise DeviceError(f"{self._files}/{command} for {nbytes} bytes from {offset} on failed: {error}") from error

    def _number(self, file: str, default: int) -> int:
        try:
            return int((self._files / file).read_text(), 0)
        except (OSError, ValueError):
            return default


def u_dma_bufs(folder: Path = CLASS, nodes: Path = NODES) -> list[UDmaBuf]:
    """Returns the nodes of the module.

    Where there are none, the one that its examples make, which says what was looked for.
    """
    names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    return [UDmaBuf(name, folder=folder, nodes=nodes) for name in names or ["udmabuf0"]]
