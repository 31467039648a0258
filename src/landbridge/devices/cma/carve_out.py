"""CarveOut: hands out parts of one memory at known bus addresses, each with its barriers."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path

from landbridge.device.api import Device
from landbridge.device.memory_provider import Caching, Side
from landbridge.device.protocols import AccessMode
from landbridge.devices.cma.source import Piece
from landbridge.errors import OutOfMemoryError
from landbridge.process.locks import new_lock
from landbridge.records import record

#: A function ``sync(offset, nbytes, mode, side)``, with offsets from the beginning of the memory.
Sync = Callable[[int, int, AccessMode, Side], None]


@record(frozen=True)
class CarveOutPart:
    """The MemoryProvider of ``nbytes`` bytes at bus ``address``, mapped at ``mapped``, with the barriers ``sync``."""

    address: int
    mapped: int
    nbytes: int
    caching: Caching
    granule: int
    sync: Sync

    def host_address(self) -> int:
        """Returns the address of the part in this process."""
        return self.mapped

    def device_address(self, device: Device) -> int:
        """Returns the bus address of the part, which is the same for every device of the board."""
        return self.address


class CarveOut:
    """``nbytes`` bytes from bus ``address`` on, which are in the file ``node`` from byte ``offset`` on.

    Parts are whole pages; the first hole that fits is used. Methods may be called from any thread.
    """

    def __init__(
        self,
        node: Path,
        flags: int,
        offset: int,
        address: int,
        nbytes: int,
        caching: Caching,
        sync: Sync | None,
        granule: int = 1,
    ) -> None:
        """Make a carve-out; ``flags`` open the node, ``sync`` is its barrier for whole granules (None: none is
        needed).
        """
        self._node, self._flags, self._offset, self._address = node, flags, offset, address
        self._nbytes = nbytes // mmap.PAGESIZE * mmap.PAGESIZE
        self._caching, self._sync, self._granule = caching, sync, granule
        self._taken: dict[int, int] = {}  # maps begin to end
        self._lock = new_lock()

    def take(self, nbytes: int, alignment: int) -> Piece:
        """Returns ``nbytes`` bytes, whole pages, at a bus address that is a multiple of ``alignment``.

        Raises OutOfMemoryError.
        """
        with self._lock:
            begin = self._hole(nbytes, max(alignment, mmap.PAGESIZE))
            try:
                fd = os.open(self._node, os.O_RDWR | os.O_CLOEXEC | self._flags)
            except OSError as error:
                raise OutOfMemoryError(f"{self._node} cannot be opened: {error.strerror}") from error
            self._taken[begin] = begin + nbytes

        def sync(offset: int, size: int, mode: AccessMode, side: Side) -> None:
            if self._sync is not None:
                self._sync(begin + offset, size, mode, side)

        def provider(mapped: int) -> CarveOutPart:
            return CarveOutPart(self._address + begin, mapped, nbytes, self._caching, self._granule, sync)

        return Piece(fd, self._offset + begin, provider, lambda: self._give_back(begin))

    def _hole(self, nbytes: int, alignment: int) -> int:
        begin = 0
        for start, stop in [*sorted(self._taken.items()), (self._nbytes, self._nbytes)]:
            begin += -(self._address + begin) % alignment
            if begin + nbytes <= start:
                return begin
            begin = max(begin, stop)
        raise OutOfMemoryError(
            f"{self._node} has no hole of {nbytes} bytes at a multiple of {alignment}: {sum(self._lengths())} of its "
            f"{self._nbytes} bytes from {self._address:#x} on are taken"
        )

    def _lengths(self) -> list[int]:
        return [stop - start for start, stop in self._taken.items()]

    def _give_back(self, begin: int) -> None:
        with self._lock:
            del self._taken[begin]
