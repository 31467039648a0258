"""The sources that memory can be imported from."""

from __future__ import annotations

from landbridge.records import record


@record(frozen=True, slots=True)
class HostPointer:
    """``nbytes`` bytes of this process from ``address`` on."""

    address: int
    nbytes: int


@record(frozen=True, slots=True)
class DmaBuf:
    """``nbytes`` bytes from ``offset`` on of the Linux dma-buf behind the file descriptor ``fd``."""

    fd: int
    offset: int
    nbytes: int


@record(frozen=True, slots=True)
class BusAddress:
    """``nbytes`` bytes at bus ``address``; ``host_address`` is where this process maps them, if it does."""

    address: int
    host_address: int | None
    nbytes: int


ImportSource = HostPointer | DmaBuf | BusAddress
