"""Checks of memory, streams and addresses that a device returns; an error names the method."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Protocol, runtime_checkable

from landbridge.device.answers import answering, failure, number, refusal
from landbridge.device.api import Device, Region, Space, Stream
from landbridge.device.protocols import Addresses, HostMemory
from landbridge.errors import DeviceError, HostViewError, LandbridgeError
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


@runtime_checkable
class InnerPointers(Protocol):
    """A device around another one, which takes ``host_pointer`` for the begin of a use by the host."""

    def inner_pointer(self, space: Space) -> int | None:
        """Returns the host address of ``space`` as the inner device says it, without a use; None where it has none."""


def check_alignment_of(space: Space, alignment: int, method: str) -> None:
    """Raises DeviceError where the addresses of ``space``, the result of ``method``, are no multiples of ``alignment``.

    They are the host's, in coherent memory, where asking for them has no effect, and the device's. A method of other
    memory may have to map it; ``host_pointer`` checks it then.
    """
    device, found = space.device, []
    if (pointer := host_address_of_new(space)) is not None:
        found.append(("host", pointer))
    if (addresses := device.capability(Addresses)) is not None:
        found.append(("device", device_address(addresses, Region(space))))
    for whose, address in found:
        if address % alignment:
            raise misaligned(space, method, f"{whose}'s address {address:#x}", alignment)


def host_address_of_new(space: Space) -> int | None:
    """Returns the host address of ``space``, in memory where asking for it has no effect; None in other memory."""
    kind = space.kind or space.device.memory_kind(space.scope)
    if kind.host_access == "none" or not kind.coherent:
        return None
    if isinstance(space.device.api, InnerPointers):
        return space.device.api.inner_pointer(space)
    memory = space.device.capability(HostMemory)
    if memory is not None:
        with suppress(HostViewError):  # memory that the host cannot address after all
            return host_pointer(memory, space)
    return None


def misaligned(space: Space, method: str, found: str, alignment: int) -> DeviceError:
    """Returns the error for ``space``, the result of ``method``, of which ``found`` is no multiple of ``alignment``."""
    kind = space.device.memory_kind(space.scope)
    return DeviceError(
        f"device {space.device}: {method}() gave a space in scope {space.scope!r} whose {found} is not a multiple of "
        f"{alignment}, the larger of the alignment that was requested and the {kind.alignment} that its MemoryKind "
        "states; the device has to align what it allocates, or state a smaller alignment"
    )


def granted_stream(stream: object, device: Device) -> Stream:
    """Returns ``stream``, the result of ``create_stream``; raises DeviceError unless it is a stream of ``device``."""
    if isinstance(stream, Stream) and stream.device == device:
        return stream
    raise refusal(device, "create_stream", stream, f"a Stream of {device}")


def host_pointer(api: HostMemory, space: Space, alignment: int = 1) -> int:
    """Returns the host address of ``space``; raises DeviceError where the device returns none, or one that is no
    multiple of ``alignment``.
    """
    try:  # of a lost device too: the host's bytes still exist; no ``answering``, as copies come here
        address: object = api.host_pointer(space)
    except (LandbridgeError, MemoryError):
        raise
    except Exception as error:
        raise failure(str(space.device), "host_pointer()", error) from error
    if type(address) is int and 0 < address < _ADDRESSES:
        if address % alignment:
            raise misaligned(space, "host_pointer", f"host's address {address:#x}", alignment)
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
