"""CoherenceDomain: a record of who wrote which bytes last, where barriers must make them visible to the other side."""

from __future__ import annotations

from dataclasses import field
from typing import Protocol, runtime_checkable

from landbridge.device.api import Device
from landbridge.device.memory_provider import Barriers, MemoryProvider, Side
from landbridge.device.protocols import AccessMode
from landbridge.memory.byte_ranges import ByteRanges, Range
from landbridge.records import record


@runtime_checkable
class BarriersAfterWork(Protocol):
    """Barriers that can do without waiting."""

    def sync_after_work(self, offset: int, nbytes: int, mode: AccessMode) -> None:
        """Make what devices wrote visible to the host, as ``Barriers.sync`` does; all work on these bytes is over."""


@record(eq=False, slots=True)
class CoherenceDomain:
    """The memory that the barriers of ``provider`` cover, from byte ``origin`` of its Backing on.

    ``by_host`` and ``by_device`` are the bytes that one side wrote and the other does not see yet, as the Backing
    counts them. ``nbytes`` is the size of the memory, which is one granule where barriers have no range. ``device`` is
    set where several devices each have a domain for the same memory; it is None where the barriers belong to ``memory``
    itself and serve every device. ``is_import``: the memory belongs to others, its barriers cover no byte past the end,
    and ``entered`` are the bytes that counted as the host's when it was imported. ``users`` counts the Storages that
    use this domain.
    """

    provider: Barriers
    origin: int
    nbytes: int
    device: Device | None = None
    memory: MemoryProvider | None = None
    is_import: bool = False
    users: int = 0
    by_host: ByteRanges = field(default_factory=ByteRanges)
    by_device: ByteRanges = field(default_factory=ByteRanges)
    entered: ByteRanges = field(default_factory=ByteRanges)

    def granules(self, start: int, stop: int) -> Range:
        """Returns the range rounded outwards to whole granules, which count from where the provider's memory begins."""
        granule, origin = self.provider.granule, self.origin
        if granule is None:
            return origin, origin + self.nbytes
        low, high = start - origin, stop - origin
        low, high = low // granule * granule, -(-high // granule) * granule
        return low + origin, (min(high, self.nbytes) if self.is_import else high) + origin

    def sync(self, start: int, stop: int, mode: AccessMode, side: Side) -> None:
        """Call the barrier before ``side`` uses ``start <= b < stop``, which the host reads or writes as
        ``mode`` says.
        """
        self.provider.sync(start - self.origin, stop - start, mode, side)

    def bring(self, start: int, stop: int, mode: AccessMode, *, is_over: bool) -> None:
        """Call the barrier before the host uses ``start <= b < stop``; ``is_over``: all work on them is known to be
        over.
        """
        if is_over and isinstance(self.provider, BarriersAfterWork):
            self.provider.sync_after_work(start - self.origin, stop - start, mode)
        else:
            self.sync(start, stop, mode, "host")

    def flush(self, start: int, stop: int) -> None:
        """Make what the host wrote to ``start <= b < stop`` visible to devices."""
        for written in self.by_host.within(start, stop):
            self.sync(*written, "w", "device")
        self.by_host.remove(start, stop)

    def write_to_host(self, start: int, stop: int) -> None:
        """Make what devices wrote to ``start <= b < stop`` visible to the host, and to all who see memory as it
        does.
        """
        for written in self.by_device.within(start, stop):
            self.sync(*written, "r", "host")
        self.by_device.remove(start, stop)

    def shift(self, by: int) -> None:
        """Move all positions by ``by`` bytes, into a Backing where they lie that much further on."""
        self.origin += by
        self.by_host, self.by_device = self.by_host.shifted(by), self.by_device.shifted(by)
        self.entered = self.entered.shifted(by)
