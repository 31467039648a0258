"""Contiguity: whether memory is physically contiguous, as far as that can be known, and why."""

from __future__ import annotations

import mmap
from typing import NamedTuple

from landbridge.device.api import Device, NdSpace, Region
from landbridge.device.granted import device_address, host_address_of_new
from landbridge.device.protocols import Addresses
from landbridge.errors import ScatteredMemoryError, ScatteredMemoryWarning
from landbridge.memory.allocators.base import Block
from landbridge.memory_kind import GLOBAL_SCOPE, MemoryKind, normalize_scope
from landbridge.reporting.warning_notes import warn

#: The device whose sources of memory may be contiguous, for the advice of messages.
_PLACED = "cma"


class Contiguity(NamedTuple):
    """Whether memory ``is_contiguous``, None where nobody knows, and the ``reason`` for that answer."""

    is_contiguous: bool | None
    reason: str


def contiguity(region: Region, nbytes: int) -> Contiguity:
    """Returns whether ``nbytes`` bytes from ``region`` on are physically contiguous, and stay so.

    The kind of the memory says it, or the device by its addresses. Of memory of the host, a part of one page is, and
    pagemap may show others to be scattered; it proves contiguity of pages that do not move.
    """
    space, kind = region.space, kind_of_space(region)
    if kind.physically_contiguous:
        return Contiguity(True, "its MemoryKind states it")
    if isinstance(space, NdSpace):
        return Contiguity(None, "rows of a space may lie anywhere")
    addresses = space.device.capability(Addresses)
    if addresses is not None:
        begin = device_address(addresses, region)
        first = mmap.PAGESIZE - begin % mmap.PAGESIZE
        for at in (*range(first, nbytes, mmap.PAGESIZE), nbytes - 1):
            found = device_address(addresses, Region(space, region.byte_offset + at))
            if at > 0 and found != begin + at:
                return Contiguity(False, f"{space.device} finds byte {at} of {begin:#x} at {found:#x}")
        return Contiguity(True, "the device's addresses of it follow each other")
    pointer = host_address_of_new(space)
    if pointer is None:
        return Contiguity(kind.physically_contiguous, f"{space.device} does not say where it lies")
    return _of_host_pages(pointer + region.byte_offset, nbytes, kind)


def _of_host_pages(address: int, nbytes: int, kind: MemoryKind) -> Contiguity:
    from landbridge.devices.cma.pagemap import is_contiguous  # few programs ask

    if address // mmap.PAGESIZE == (address + max(nbytes, 1) - 1) // mmap.PAGESIZE:
        return Contiguity(True, "it lies in one page")
    shown = is_contiguous(address, nbytes) if kind.host_readable else None
    if shown is False:
        return Contiguity(False, "it is scattered, as /proc/self/pagemap shows")
    if shown and kind.pinned:
        return Contiguity(True, "its pages are pinned, and follow each other in /proc/self/pagemap")
    if shown:
        return Contiguity(None, "its pages follow each other now, and may move as they are not pinned")
    if kind.physically_contiguous is False:
        return Contiguity(False, "its MemoryKind states that it is not")
    return Contiguity(
        None, "its source does not state it, and /proc/self/pagemap does not show it (this needs CAP_SYS_ADMIN)"
    )


def kind_of_space(region: Region) -> MemoryKind:
    """Returns the kind of the space of ``region``, which may say more than that of its scope."""
    return region.space.kind or region.space.device.memory_kind(region.space.scope)


def check_contiguous(block: Block, nbytes: int) -> None:
    """Raises ScatteredMemoryError unless ``nbytes`` bytes of ``block`` are known to be physically contiguous."""
    found = contiguity(block.region, nbytes)
    if not found.is_contiguous:
        space = block.region.space
        outcome = "is not" if found.is_contiguous is False else "is not known to be"
        raise ScatteredMemoryError(
            f"{nbytes} bytes that are physically contiguous were requested of scope {space.scope!r} of {space.device}, "
            f"and what was allocated {outcome}: {found.reason}; {_way_out(space.device)}"
        )


def warn_if_scattered(device: Device, scope: str, region: Region, nbytes: int) -> None:
    """Warn where ``device`` is taken for contiguous memory and ``nbytes`` bytes from ``region`` on are not known to
    be.
    """
    if not device.api.contiguous_by_default or normalize_scope(scope) != GLOBAL_SCOPE:
        return
    kind = kind_of_space(region)
    if kind.physically_contiguous or nbytes <= mmap.PAGESIZE:
        return
    warn(
        f"{nbytes} bytes of {device} are not known to be physically contiguous: the source of its scope "
        f"{GLOBAL_SCOPE!r} does not state it; {_way_out(device)}, or say contiguous=False where it does not matter",
        ScatteredMemoryWarning,
    )


def _way_out(device: Device) -> str:
    declared = [scope for scope, kind in device.memory_kinds.items() if kind.physically_contiguous and not kind.by_name]
    if declared:
        return f"take scope {' or '.join(map(repr, declared))}, which is contiguous"
    if device.name == _PLACED or device.api.contiguous_by_default:
        return (
            "ask for no more than one page of the source, or give the machine one that is contiguous: a dma-heap over "
            f"a reserved area, u-dma-buf, huge pages (landbridge devices --check {device.name} lists what there is)"
        )
    return (
        f"none of its scopes states that it is contiguous; take device={_PLACED!r} (landbridge devices --check "
        f"{_PLACED} lists its sources), or memory of a device that states it"
    )
