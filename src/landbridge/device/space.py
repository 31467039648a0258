"""Spaces, regions and the sources memory can be imported from: what every DeviceAPI method takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from landbridge.device.device import Device


@dataclass(frozen=True, slots=True)
class Space:
    """One allocation. ``handle`` is the device's own: opaque, and nobody else does arithmetic on it."""

    device: Device
    scope: str
    handle: Any


@dataclass(frozen=True, slots=True)
class NdSpace(Space):
    """One allocation in a scope of more than one dimension: ``physical_shape`` elements, in rows.

    The first dimension counts the rows, ``row_bytes`` are those of each that may be used. Where they are, one of two
    says: row ``r`` begins ``r * row_pitch`` bytes into the space, or is a space of its own, of handle ``rows[r]``.
    ``free_data_space`` is given the whole.
    """

    physical_shape: tuple[int, ...]
    row_bytes: int
    row_pitch: int | None = None
    rows: tuple[Any, ...] | None = None

    def row(self, number: int) -> Region:
        """Where row ``number`` begins."""
        if self.rows is not None:
            return Region(Space(self.device, self.scope, self.rows[number]))
        return Region(self, number * (self.row_pitch or 0))


@dataclass(frozen=True, slots=True)
class Region:
    """The bytes of ``space`` from ``byte_offset`` on."""

    space: Space
    byte_offset: int = 0


@dataclass(frozen=True, slots=True)
class HostPointer:
    """``nbytes`` bytes of this process from ``address`` on."""

    address: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class DmaBuf:
    """``nbytes`` bytes from ``offset`` on of the Linux dma-buf behind the file descriptor ``fd``."""

    fd: int
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class BusAddress:
    """``nbytes`` bytes at bus ``address``; ``host_address`` is where this process maps them, if it does."""

    address: int
    host_address: int | None
    nbytes: int


ImportSource = HostPointer | DmaBuf | BusAddress
