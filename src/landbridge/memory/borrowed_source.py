"""What memory was imported from, so that parts of it can be imported by others too."""

from __future__ import annotations

from typing import NamedTuple

from landbridge.device.import_source import BusAddress, DmaBuf
from landbridge.device.memory_provider import Caching


class BorrowedSource(NamedTuple):
    """By what devices can import the memory, where that is more than an address of this process.

    ``keep`` is what makes it valid. ``caching``: how the host reaches it, where that is known.
    """

    source: DmaBuf | BusAddress
    keep: object
    caching: Caching | None = None

    def part(self, start: int, nbytes: int) -> DmaBuf | BusAddress:
        """``nbytes`` bytes from ``start`` on."""
        match self.source:
            case DmaBuf(fd=fd, offset=offset):
                return DmaBuf(fd, offset + start, nbytes)
            case BusAddress(address=address, host_address=host):
                return BusAddress(address + start, None if host is None else host + start, nbytes)
