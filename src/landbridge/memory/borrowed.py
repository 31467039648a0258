"""Borrowed memory: a Storage over bytes of this process, or over what a device can import."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from landbridge.device.api import Device, Region, Space
from landbridge.device.granted import granted
from landbridge.device.import_source import BusAddress, DmaBuf, HostPointer, ImportSource
from landbridge.device.memory_provider import MemoryProvider
from landbridge.device.protocols import AccessMode, MemoryImport
from landbridge.device.registry import device as find_device
from landbridge.errors import DeviceLostError, InputError, ZeroCopyError
from landbridge.memory.allocators.base import QueuedUse, wait_for
from landbridge.memory.backing import Backing, root_of
from landbridge.memory.borrowed_file import BorrowedFile
from landbridge.memory.borrowed_source import BorrowedSource
from landbridge.memory.coherence import mark_imported
from landbridge.memory.extents import OTHER_MEMORY, unreachable
from landbridge.memory.host_array import byte_bounds
from landbridge.memory.memory_barriers import (
    ArrayBarriers,
    DmaBufBarriers,
    barriers_of_array,
    have_barriers,
    is_dma_buf,
)
from landbridge.memory.storage import Storage
from landbridge.memory.windows import WindowKeeper, bus_windows, file_windows, host_windows
from landbridge.memory_kind import MemoryKind

#: More than the size of any file.
_WHOLE = 1 << 63


@cache
def host_device() -> Device:
    """Returns the device that ordinary memory of this process belongs to."""
    return find_device("cpu")


@cache
def borrowed_host_kind() -> MemoryKind:
    """Returns the kind of host memory that others allocated, of whose alignment nothing is known."""
    return replace(host_device().memory_kind(), alignment=1)


def is_host_memory(storage: Storage) -> bool:
    """Returns whether ``storage`` is memory of the host as DLPack defines it, whoever allocated it."""
    return storage.device == host_device() or is_host_kind(storage.kind)


def is_host_kind(kind: MemoryKind) -> bool:
    """Returns whether memory of ``kind`` is the host's as DLPack defines it."""
    return kind.dlpack_device is not None and kind.dlpack_device == borrowed_host_kind().dlpack_device


def import_memory(
    device: Device,
    source: ImportSource,
    access: AccessMode,
    owner: object = None,
    provider: MemoryProvider | None = None,
) -> Storage:
    """Returns a Storage over memory of others that ``device`` uses in place; it is released before ``owner`` is.

    ``provider``: the barriers of the memory, where they are not the device's; those of a dma-buf are known. Raises
    ZeroCopyError with the device's reason when it cannot import it.
    """
    api = device.capability(MemoryImport)
    if api is None:
        raise ZeroCopyError(
            f"{device} cannot use {source} in place: it has no import_memory; copy the data to a tensor of its own"
        )
    with device.state.submitting(f"an import of {source}", "import_memory"):
        space = granted(api.import_memory(device.index, source, access), device, "import_memory")

    def release(uses: Sequence[QueuedUse]) -> None:
        if not device.is_lost:
            wait_for(uses)
            with suppress(DeviceLostError), device.state.watching(method="release_import"):
                api.release_import(space)

    before, whole = 0, source
    if provider is not None and isinstance(source, BusAddress):
        before, whole = _whole_of(source, provider, device)
    holder = WindowKeeper()
    backing, begin = _backing_of(whole, holder)
    origin = begin + before
    if isinstance(source, DmaBuf) and is_dma_buf(source.fd):
        barriers = DmaBufBarriers(source.fd)
        root, there = root_of(backing, origin)
        have_barriers(root, there - source.offset, barriers.nbytes, barriers)
    elif provider is not None:
        have_barriers(*root_of(backing, begin), whole.nbytes, provider)
    storage = Storage(
        Region(space),
        device.memory_kind(space.scope),
        source.nbytes,
        readonly=access == "r",
        owner=owner,
        release=release,
        within=(backing, origin),
        holder=holder,
    )
    if isinstance(source, DmaBuf):
        file = BorrowedFile(source)
        storage.source = BorrowedSource(replace(source, fd=file.fd), file)
        storage.file = file if file.can_shrink else None
    elif isinstance(source, BusAddress):
        storage.source = BorrowedSource(source, owner)
    if (problem := unreachable(storage, 0, storage.nbytes)) is not None:
        storage.free()
        raise ZeroCopyError(f"{device} cannot use {source} in place: {problem}; {OTHER_MEMORY}")
    mark_imported(storage)
    return storage


def _whole_of(source: BusAddress, provider: MemoryProvider, device: Device) -> tuple[int, BusAddress]:
    """Returns the offset of ``source`` in the memory of ``provider`` that it is part of, and the source of all
    of that.
    """
    begin = provider.device_address(device)
    before = 0 if begin is None else source.address - begin
    if not 0 <= before <= provider.nbytes - source.nbytes:
        raise InputError(
            f"{source} is not in the {provider.nbytes} bytes that its provider has"
            f"{'' if begin is None else f' from {begin:#x} on'}; give an address inside"
        )
    host = None if source.host_address is None else source.host_address - before
    return before, BusAddress(source.address - before, host, provider.nbytes)


def _backing_of(source: ImportSource, holder: WindowKeeper) -> tuple[Backing, int]:
    """Returns the Backing of what is imported, shared with others who have it, and the byte where ``source`` begins."""
    created = Backing()
    match source:
        case HostPointer(address=address, nbytes=nbytes):
            host_windows.enter(address, address + nbytes, created, 0, holder)
        case BusAddress(address=address, nbytes=nbytes, host_address=host_address):
            bus_windows.enter(address, address + nbytes, created, 0, holder)
            if host_address is not None:
                host_windows.enter(host_address, host_address + nbytes, created, 0, holder)
        case DmaBuf(offset=offset, nbytes=nbytes):
            windows = file_windows(source.fd)
            if is_dma_buf(source.fd):  # its barriers have no range: all of it is one
                windows.enter(0, _WHOLE, created, 0, holder)
                return created, offset
            windows.enter(offset, offset + nbytes, created, 0, holder)
    return created, 0


def borrow_host(address: int, nbytes: int, owner: object, *, readonly: bool) -> Storage:
    """Returns a Storage over ``nbytes`` bytes of this process that ``owner`` keeps alive."""
    space = Space(host_device(), "global", address)
    kind = borrowed_host_kind()
    return Storage(Region(space), kind, nbytes, readonly=readonly, owner=owner, address=address)


def borrow_array(array: np.ndarray[Any, Any], *, readonly: bool) -> Storage:
    """Returns a Storage over the bytes that the elements of ``array`` lie in, which it keeps alive.

    The Storage of a board's array has the array's barriers, and devices reach it by its bus address.
    """
    low, high = byte_bounds(array)
    storage = borrow_host(low, high - low, array, readonly=readonly)
    board = barriers_of_array(array)
    if board is not None:
        _enter_board(storage, board, low)
    return storage


def _enter_board(storage: Storage, board: ArrayBarriers, low: int) -> None:
    start, bus = board.host_address(), board.bus_address
    backing, origin = storage.part()
    # All of the array is one Backing, as its barriers have no range.
    known = host_windows.enter(start, start + board.nbytes, backing, origin + start - low, storage)
    known = bus_windows.enter(bus, bus + board.nbytes, *known, storage)
    if not board.coherent:
        have_barriers(*known, board.nbytes, board)
    storage.source = BorrowedSource(BusAddress(bus + low - start, low, storage.nbytes), storage.owner, board.caching)
