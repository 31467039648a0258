"""Memory of others: a Storage over bytes of this process, or over what a device can import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from landbridge.device.api import Device, Region, Space
from landbridge.device.import_source import BusAddress, DmaBuf, HostPointer, ImportSource
from landbridge.device.protocols import AccessMode, MemoryImport
from landbridge.device.registry import device as find_device
from landbridge.errors import ZeroCopyError
from landbridge.memory.allocators.base import Use, wait_for
from landbridge.memory.backing import Backing
from landbridge.memory.host_array import byte_bounds
from landbridge.memory.lent_file import LentFile
from landbridge.memory.storage import Storage
from landbridge.memory.windows import bus_windows, file_windows, host_windows
from landbridge.memory_kind import MemoryKind


@cache
def host_device() -> Device:
    """The device that ordinary memory of this process belongs to."""
    return find_device("cpu")


@cache
def borrowed_host_kind() -> MemoryKind:
    """The kind of host memory that others allocated: nothing is known of its alignment."""
    return replace(host_device().memory_kind(), alignment=1)


def import_memory(device: Device, source: ImportSource, access: AccessMode, owner: object = None) -> Storage:
    """A Storage over memory of others that ``device`` uses in place; released before ``owner`` is let go.

    Raises ZeroCopyError when the device cannot, with its reason.
    """
    api = device.capability(MemoryImport)
    if api is None:
        raise ZeroCopyError(
            f"{device} cannot use {source} in place: it has no import_memory; copy the data to a tensor of its own"
        )
    with device.state.submitting(f"an import of {source}"):
        space = api.import_memory(device.index, source, access)

    def release(uses: Sequence[Use]) -> None:
        if not device.is_lost:
            wait_for(uses)
            api.release_import(space)

    storage = Storage(
        Region(space),
        device.memory_kind(space.scope),
        source.nbytes,
        readonly=access == "r",
        owner=owner,
        release=release,
        within=_backing_of(source),
    )
    if isinstance(source, DmaBuf) and (file := LentFile(source)).can_shrink:
        storage.file = file
    return storage


def _backing_of(source: ImportSource) -> tuple[Backing, int]:
    """The Backing of what is imported, and the byte of it at which ``source`` begins: that of others who have it."""
    made = Backing(), 0
    match source:
        case HostPointer(address=address, nbytes=nbytes):
            return host_windows.enter(address, address + nbytes, *made)
        case BusAddress(address=address, nbytes=nbytes, host_address=host_address):
            found = bus_windows.enter(address, address + nbytes, *made)
            return found if host_address is None else host_windows.enter(host_address, host_address + nbytes, *found)
        case DmaBuf(offset=offset, nbytes=nbytes):
            return file_windows(source.fd).enter(offset, offset + nbytes, *made)


def borrow_host(address: int, nbytes: int, owner: object, *, readonly: bool) -> Storage:
    """A Storage over ``nbytes`` bytes of this process that ``owner`` keeps alive."""
    space = Space(host_device(), "global", address)
    kind = borrowed_host_kind()
    return Storage(Region(space), kind, nbytes, readonly=readonly, owner=owner, address=address)


def borrow_array(array: np.ndarray[Any, Any], *, readonly: bool) -> Storage:
    """A Storage over the bytes that the elements of ``array`` lie in, which it keeps alive."""
    low, high = byte_bounds(array)
    return borrow_host(low, high - low, array, readonly=readonly)
