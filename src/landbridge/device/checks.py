"""Checks that several devices make before they call their drivers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from landbridge.device.api import Device, DeviceAPI, Region, Space, Stream
from landbridge.device.granted import host_pointer
from landbridge.device.protocols import HostMemory
from landbridge.errors import DeviceLostError, HostViewError, InputError, UseAfterFreeError
from landbridge.memory_kind import MemoryKind, normalize_scope


def stream_handle(api: DeviceAPI, index: int, stream: Stream) -> Any:
    """Returns the handle of ``stream``; raises InputError unless it belongs to instance ``index`` of ``api``.

    Raises DeviceLostError for a stream of a life that ended, UseAfterFreeError unless its handle is ``alive``.
    """
    if stream.device.api is not api or stream.device.index != index:
        raise InputError(f"a stream of {stream.device} was given to {api.name}:{index}; a stream belongs to one device")
    if stream.device != Device(api, index):
        raise DeviceLostError(f"this stream is of a life of {stream.device} that ended; create another one")
    if not stream.handle.alive:
        raise UseAfterFreeError("this stream was freed; create another one")
    return stream.handle


def owning_device(api: DeviceAPI, src: Space, dst: Space) -> Device:
    """Returns the device of ``api`` that does a copy, the destination's if possible; raises InputError where neither
    is.
    """
    for space in (dst, src):
        if space.device.api is api:
            return space.device
    raise InputError(f"{api.name} copies neither from {src.device} nor to {dst.device}")


def own_device(api: DeviceAPI, src: Space, dst: Space) -> Device:
    """Deprecated: the former name of ``owning_device``, which packages that ``landbridge new-device`` wrote import."""
    warnings.warn("own_device is deprecated; call owning_device", DeprecationWarning, stacklevel=2)
    return owning_device(api, src, dst)


def is_copy_to_itself(api: DeviceAPI, src: Region, dst: Region, nbytes: int) -> bool:
    """Returns whether both ends are the same bytes; raises InputError where they overlap only in part."""
    if src.space != dst.space:
        return False
    distance = abs(src.byte_offset - dst.byte_offset)
    if 0 < distance < nbytes:
        raise InputError(
            f"{api.name}: a copy of {nbytes} bytes from {src.byte_offset} to {dst.byte_offset} of one space overlaps; "
            "give disjoint ranges"
        )
    return distance == 0


def check_inside(byte_offset: int, nbytes: int, size: int, where: str) -> None:
    """Raises InputError unless ``nbytes`` bytes from ``byte_offset`` on lie in a space of ``size`` bytes."""
    if nbytes < 0 or not 0 <= byte_offset <= size - nbytes:
        raise InputError(f"{where}: {nbytes} bytes from {byte_offset} on do not lie in a space of {size} bytes")


def check_request(nbytes: int, alignment: int, where: str) -> None:
    """Raises InputError for a size or an alignment that no allocation can have."""
    if nbytes < 0 or alignment < 1 or alignment & (alignment - 1):
        raise InputError(f"{where}: {nbytes} bytes aligned to {alignment}; legal: at least 0 bytes, a power of two")


def kind_of(kinds: Mapping[str, MemoryKind], scope: str, where: str) -> MemoryKind:
    """Returns the MemoryKind of ``scope``; raises InputError that names the legal scopes."""
    kind = kinds.get(normalize_scope(scope))
    if kind is None:
        raise InputError(f"device {where} has no memory scope {scope!r}; legal: {', '.join(kinds)}")
    return kind


def host_reaches(space: Space) -> bool:
    """Returns whether this process may access ``space``, of any device, by its address and without a barrier.

    Devices ask before they treat another device's memory as the host's. The memory's own kind decides, not an ability
    alone.
    """
    kind = space.device.memory_kind(space.scope)
    in_place = kind.host_access == "read_write" and kind.coherent and kind.ndim == 1
    return in_place and space.device.capability(HostMemory) is not None


def host_address(region: Region) -> int:
    """Returns the address of ``region`` of another device in this process; raises HostViewError where it has none."""
    host = region.space.device.capability(HostMemory)
    if host is None:
        raise HostViewError(f"{region.space.device} has no memory that the host can address; copy it to the host first")
    return host_pointer(host, region.space) + region.byte_offset
