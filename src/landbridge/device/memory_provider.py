"""MemoryProvider: what comes with memory, whoever looks at it: its barriers, caching and addresses."""

from __future__ import annotations

from enum import Enum
from typing import Literal, Protocol, runtime_checkable

from landbridge.device.api import Device, Space
from landbridge.device.protocols import AccessMode

#: Who uses the memory next.
Side = Literal["host", "device"]


class Caching(Enum):
    """How the host reaches memory: through its caches; writes gathered, reads uncached; neither; or as registers,
    where unaligned and vector accesses fault."""

    CACHED = "cached"
    WRITE_COMBINED = "write_combined"
    UNCACHED = "uncached"
    DEVICE = "device"


class Barriers(Protocol):
    """What lets host and devices see each other's writes to one piece of memory.

    Offsets count from the first byte of the memory. Its methods may be called from any thread.
    """

    @property
    def granule(self) -> int | None:
        """Bytes that a barrier covers at least, a power of two; None when it has no range and covers everything."""

    def sync(self, offset: int, nbytes: int, mode: AccessMode, side: Side) -> None:
        """Let ``side`` see what the other one wrote of ``nbytes`` bytes from ``offset`` on.

        ``mode``: what the host does with them. Before the host's use (``side`` is "host") "r" and "rw" bring what
        devices wrote and "w" need not; after it ("device") "w" and "rw" make the host's writes visible. Both ends are
        multiples of the granule, or ends of the memory. Raises DeviceError.
        """


class MemoryProvider(Barriers, Protocol):
    """The barriers, caching and addresses of one piece of memory, which lives at least as long as its provider does.

    Imports keep it.
    """

    @property
    def nbytes(self) -> int:
        """Bytes of the memory."""

    @property
    def caching(self) -> Caching:
        """How the host reaches the bytes."""

    def host_address(self) -> int | None:
        """Where this process maps the memory; None where it does not, or where each import maps it anew."""

    def device_address(self, device: Device) -> int | None:
        """The address at which ``device`` reaches the memory; None where nobody knows one."""


@runtime_checkable
class ProvidedMemory(Protocol):
    """Memory with barriers and addresses that are neither the device's nor a dma-buf's. Absent: it has none."""

    def memory_provider(self, space: Space) -> MemoryProvider | None:
        """What comes with ``space``, the same for as long as it lives; None for memory that has nothing."""
