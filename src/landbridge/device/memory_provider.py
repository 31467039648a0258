"""MemoryProvider: the barriers, caching and addresses that belong to memory, whichever device uses it."""

from __future__ import annotations

from enum import Enum
from typing import Literal, Protocol, runtime_checkable

from landbridge.device.api import Device, Space
from landbridge.device.protocols import AccessMode

#: The side that uses the memory next.
Side = Literal["host", "device"]


class Caching(Enum):
    """How the host reaches memory: cached, write-combined, uncached, or as registers, where unaligned and vector
    accesses fault.
    """

    CACHED = "cached"
    WRITE_COMBINED = "write_combined"
    UNCACHED = "uncached"
    DEVICE = "device"


class Barriers(Protocol):
    """The barriers that make writes of host and devices to one piece of memory visible to each other.

    Offsets count from the first byte of the memory. Methods may be called from any thread.
    """

    @property
    def granule(self) -> int | None:
        """Returns the granule of a barrier in bytes, a power of two; None when a barrier covers all of the memory."""

    def sync(self, offset: int, nbytes: int, mode: AccessMode, side: Side) -> None:
        """Make what the other side wrote to ``nbytes`` bytes from ``offset`` on visible to ``side``.

        ``mode`` is the host's access. Before it (``side`` is "host"), "r" and "rw" bring what devices wrote, and "w"
        need not; after it ("device"), "w" and "rw" make the host's writes visible. Both ends are multiples of the
        granule, or ends of the memory. Raises DeviceError.
        """


class MemoryProvider(Barriers, Protocol):
    """The barriers, caching and addresses of one piece of memory, which lives at least as long as its provider.

    Imports keep the provider alive.
    """

    @property
    def nbytes(self) -> int:
        """Returns the bytes of the memory."""

    @property
    def caching(self) -> Caching:
        """Returns how the host reaches the bytes."""

    def host_address(self) -> int | None:
        """Returns the address of the memory in this process; None where it is not mapped, or each import maps it
        anew.
        """

    def device_address(self, device: Device) -> int | None:
        """Returns the address at which ``device`` reaches the memory; None where none is known."""


@runtime_checkable
class ProvidedMemory(Protocol):
    """The ability to have memory with barriers and addresses that are neither the device's nor a dma-buf's."""

    def memory_provider(self, space: Space) -> MemoryProvider | None:
        """Returns the provider of ``space``, the same one for as long as it lives; None for memory without one."""
