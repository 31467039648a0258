"""CoherenceDomain: who wrote which bytes last, where barriers are needed before the other side sees them."""

from __future__ import annotations

from dataclasses import field

from landbridge.device.api import Device
from landbridge.device.memory_provider import Barriers, MemoryProvider, Side
from landbridge.device.protocols import AccessMode
from landbridge.memory.byte_ranges import ByteRanges, Range
from landbridge.records import record


@record(eq=False, slots=True)
class CoherenceDomain:
    """Memory whose barriers are ``provider``, from byte ``origin`` of its Backing on.

    ``by_host`` and ``by_device`` are the bytes that one side wrote and the other does not see yet, counted as the
    Backing counts them. ``nbytes``: of the memory, which is one granule where barriers have no range. ``device``:
    whose barriers they are, where other devices have a domain of their own for the same memory; None where the barriers
    are those of ``memory`` itself and serve every device. ``is_import``: it is memory of others, of which barriers
    cover no byte past the end, and of which ``entered`` are the bytes that counted as the host's when they came.
    ``users``: how many Storages look at the memory by way of it.
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
        """The range rounded outwards to whole granules, which are counted from where the provider's memory begins."""
        granule, origin = self.provider.granule, self.origin
        if granule is None:
            return origin, origin + self.nbytes
        low, high = start - origin, stop - origin
        low, high = low // granule * granule, -(-high // granule) * granule
        return low + origin, (min(high, self.nbytes) if self.is_import else high) + origin

    def sync(self, start: int, stop: int, mode: AccessMode, side: Side) -> None:
        """The barrier before ``side`` uses ``start <= b < stop``, which the host reads or writes as ``mode`` says."""
        self.provider.sync(start - self.origin, stop - start, mode, side)

    def flush(self, start: int, stop: int) -> None:
        """Let devices see what the host wrote of ``start <= b < stop``."""
        for written in self.by_host.within(start, stop):
            self.sync(*written, "w", "device")
        self.by_host.remove(start, stop)

    def write_to_host(self, start: int, stop: int) -> None:
        """Let the host, and whoever sees memory as it does, see what devices wrote of ``start <= b < stop``."""
        for written in self.by_device.within(start, stop):
            self.sync(*written, "r", "host")
        self.by_device.remove(start, stop)

    def shift(self, by: int) -> None:
        """Count from a Backing in which all bytes lie ``by`` further on."""
        self.origin += by
        self.by_host, self.by_device = self.by_host.shifted(by), self.by_device.shifted(by)
        self.entered = self.entered.shifted(by)
