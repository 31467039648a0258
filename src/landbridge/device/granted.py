"""What a device grants, memory and addresses: of the form that the contract says, or an error that names the method."""

from __future__ import annotations

from landbridge.device.answers import answering
from landbridge.device.api import Device, Space
from landbridge.device.protocols import HostMemory
from landbridge.errors import DeviceError


def granted(space: object, device: Device, method: str) -> Space:
    """``space`` as ``method`` of ``device`` gave it; raises DeviceError where it is no Space."""
    if isinstance(space, Space):
        return space
    raise DeviceError(f"device {device}: {method} returned {space!r}; legal: a Space, or an error of landbridge.errors")


def host_pointer(api: HostMemory, space: Space) -> int:
    """Where the host finds ``space``; raises DeviceError where the device does not say."""
    with answering(str(space.device), "host_pointer()"):  # of a lost device too: the host's bytes are still there
        address: object = api.host_pointer(space)
    if type(address) is int and address > 0:
        return address
    raise DeviceError(
        f"device {space.device}: host_pointer() of a space in scope {space.scope!r} is {address!r}; legal: an address, "
        "as the scope's MemoryKind says that the host has access"
    )
