"""The source that memory was imported from, so that others can import parts of it too."""

from __future__ import annotations

from typing import NamedTuple

from landbridge.device.import_source import BusAddress, DmaBuf
from landbridge.device.memory_provider import Caching


class BorrowedSource(NamedTuple):
    """The descriptors or bus address that devices can import the memory by, where it has more than a host address.

    ``keep`` is the object that keeps the source valid. ``caching``: how the host reaches the memory, where that is
    known.
    """

    source: DmaBuf | BusAddress
    keep: object
    caching: Caching | None = None

    def part(self, start: int, nbytes: int) -> DmaBuf | BusAddress:
        """Returns the source of ``nbytes`` bytes from ``start`` on."""
        match self.source:
            case DmaBuf(fd=fd, offset=offset):
                return DmaBuf(fd, offset + start, nbytes)
            case BusAddress(address=address, host_address=host):
                return BusAddress(address + start, None if host is None else host + start, nbytes)
