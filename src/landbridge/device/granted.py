"""Checks of memory, streams and addresses that a device returns; an error names the method."""

from __future__ import annotations

import os

from landbridge.device.answers import answering, number, refusal
from landbridge.device.api import Device, Region, Space, Stream
from landbridge.device.protocols import Addresses, HostMemory
from landbridge.errors import DeviceError
from landbridge.memory_kind import MemoryKind

#: The bound of a process's addresses: those of x86-64 have 56 bits, those of AArch64 52.
_ADDRESSES = 1 << 57


def granted(space: object, device: Device, method: str) -> Space:
    """Returns ``space``, the result of ``method`` of ``device``; raises DeviceError unless it is a Space of that
    device.
    """
    if not isinstance(space, Space):
        raise refusal(device, method, space, "a Space")
    if space.device != device:
        raise refusal(device, method, space, f"a Space of {device}")
    if space.scope not in device.memory_kinds or not isinstance(space.kind, MemoryKind | None):
        scopes = ", ".join(device.memory_kinds)
        raise refusal(
            device, method, space, f"a Space in one of its scopes ({scopes}), whose kind is a MemoryKind or None"
        )
    return space


def granted_stream(stream: object, device: Device) -> Stream:
    """Returns ``stream``, the result of ``create_stream``; raises DeviceError unless it is a stream of ``device``."""
    if isinstance(stream, Stream) and stream.device == device:
        return stream
    raise refusal(device, "create_stream", stream, f"a Stream of {device}")


def host_pointer(api: HostMemory, space: Space) -> int:
    """Returns the host address of ``space``; raises DeviceError where the device returns none."""
    with answering(str(space.device), "host_pointer()"):  # of a lost device too: the host's bytes still exist
        address: object = api.host_pointer(space)
    if type(address) is int and 0 < address < _ADDRESSES:
        return address
    raise DeviceError(
        f"device {space.device}: host_pointer() of a space in scope {space.scope!r} is {address!r}; legal: an address, "
        "as the scope's MemoryKind says that the host has access"
    )


def device_address(api: Addresses, region: Region) -> int:
    """Returns the address that the device of ``region`` uses for it; raises DeviceError where the device returns
    none.
    """
    device = region.space.device
    with answering(str(device), "device_address()"):
        found: object = api.device_address(region)
    return number(found, device, "device_address", "an address")


def open_file(found: object, device: object, method: str) -> int:
    """Returns ``found``, a descriptor that ``method`` of ``device`` returned; raises DeviceError unless it is open."""
    descriptor = number(found, device, method, "an open file descriptor", 1 << 31)
    try:
        os.fstat(descriptor)
    except OSError as error:
        raise refusal(device, method, found, "an open file descriptor") from error
    return descriptor
