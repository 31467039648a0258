"""The sources that a device can import memory from: a host pointer, a dma-buf, a bus address."""

from __future__ import annotations

from landbridge.records import record


@record(frozen=True, slots=True)
class HostPointer:
    """A source: ``nbytes`` bytes of this process from ``address`` on."""

    address: int
    nbytes: int


@record(frozen=True, slots=True)
class DmaBuf:
    """A source: ``nbytes`` bytes from ``offset`` on of the Linux dma-buf behind the file descriptor ``fd``."""

    fd: int
    offset: int
    nbytes: int


@record(frozen=True, slots=True)
class BusAddress:
    """A source: ``nbytes`` bytes at bus ``address``; ``host_address`` is where this process maps them, if it does."""

    address: int
    host_address: int | None
    nbytes: int


ImportSource = HostPointer | DmaBuf | BusAddress
