"""Extents: the addresses at which a device finds the bytes of a Storage, and whether it can use them there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from landbridge.device.api import Device
from landbridge.device.granted import device_address
from landbridge.device.import_source import BusAddress
from landbridge.device.protocols import Addresses
from landbridge.memory.row_space import region_at
from landbridge.memory.storage import Storage
from landbridge.memory_kind import MemoryKind

#: The smallest page size: addresses inside one page are contiguous.
PAGE = 4096
_NAMED = 4  # how many extents a message lists

#: The advice for memory that lies where a device cannot use it.
OTHER_MEMORY = "give memory that the device allocated, with lb.empty(..., device=...), or allow a copy"

#: A function from a byte of a Storage to its address.
_AddressOf = Callable[[int], int]


class Extent(NamedTuple):
    """``nbytes`` bytes from ``address`` on."""

    address: int
    nbytes: int


def extents(storage: Storage, device: Device, start: int = 0, stop: int | None = None) -> tuple[Extent, ...]:
    """Returns the addresses at which ``device`` finds the bytes ``start <= b < stop`` of ``storage`` (None: to its
    end).

    The extents are in order of the bytes. The addresses are the device's own where it has ``Addresses``, else those
    that the memory came with: its provider's, or the bus address it was imported from. Contiguous bytes are one extent,
    which the kind's ``segment_boundary`` ends. The result is empty where no address is known, and for memory in rows.
    """
    address_of = _addresses(storage, device)
    if address_of is None:
        return ()
    boundary = storage.kind.segment_boundary if storage.device == device else None
    found: list[Extent] = []
    contiguous = bool(storage.kind.physically_contiguous) and not storage.is_import
    for part in _parts(address_of, start, storage.nbytes if stop is None else stop, contiguous=contiguous):
        if found and sum(found[-1]) == part.address:
            part = Extent(found[-1].address, found.pop().nbytes + part.nbytes)
        found += _cut(part, boundary)
    return tuple(found)


def unreachable(storage: Storage, start: int, stop: int) -> str | None:
    """Returns why the device of ``storage`` cannot use the bytes ``start <= b < stop``; None where it can, or no
    address is known.
    """
    kind = storage.kind
    if not limits_addresses(kind) or start == stop:
        return None
    found = extents(storage, storage.device, start, stop)
    if not found:
        return None
    wrong = []
    if found[0].address % kind.offset_alignment:
        wrong.append(f"begins at multiples of {kind.offset_alignment} (offset_alignment)")
    if kind.dma_address_bits is not None and max(map(sum, found)) > 1 << kind.dma_address_bits:
        wrong.append(f"has addresses of {kind.dma_address_bits} bits (dma_address_bits)")
    if kind.max_segments is not None and len(found) > kind.max_segments:
        within = "" if kind.segment_boundary is None else f", none across a multiple of {kind.segment_boundary:#x}"
        wrong.append(f"lies in {kind.max_segments} segments at most{within} (max_segments)")
    if not wrong:
        return None
    listed = ", ".join(f"{extent.nbytes} at {extent.address:#x}" for extent in found[:_NAMED])
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"{storage.device} finds its bytes in {listed}{more}, and takes memory that {' and '.join(wrong)}"


def limits_addresses(kind: MemoryKind) -> bool:
    """Returns whether memory of ``kind`` can lie at addresses that its device does not accept."""
    return kind.offset_alignment > 1 or limits_pieces(kind)


def limits_pieces(kind: MemoryKind) -> bool:
    """Returns whether memory of ``kind`` can lie at addresses, or in pieces, that its device does not accept at any
    alignment.
    """
    return kind.dma_address_bits is not None or kind.max_segments is not None


def _addresses(storage: Storage, device: Device) -> _AddressOf | None:
    if storage.kind.ndim > 1:
        return None
    if storage.device == device and (api := device.capability(Addresses)) is not None:
        base = storage.live_region
        return lambda offset: device_address(api, region_at(base, offset))
    domains, origin = storage.domains()
    for domain in domains:
        if domain.memory is not None and (begin := domain.memory.device_address(device)) is not None:
            first = begin + origin - domain.origin
            return lambda offset: first + offset
    source = None if storage.source is None else storage.source.source
    if isinstance(source, BusAddress):
        bus = source.address
        return lambda offset: bus + offset
    return None


def _parts(address_of: _AddressOf, start: int, stop: int, *, contiguous: bool) -> Iterator[Extent]:
    """Yields extents of one page each, or one for all bytes that a device allocated and that are ``contiguous``."""
    while start < stop:
        address = address_of(start)
        nbytes = stop - start if contiguous else min(PAGE - address % PAGE, stop - start)
        yield Extent(address, nbytes)
        start += nbytes


def _cut(extent: Extent, boundary: int | None) -> Iterator[Extent]:
    address, rest = extent
    while rest:
        nbytes = rest if boundary is None else min(boundary - address % boundary, rest)
        yield Extent(address, nbytes)
        address, rest = address + nbytes, rest - nbytes
