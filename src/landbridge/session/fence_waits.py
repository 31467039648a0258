"""How a Session waits for fences of others: in the queue of the one device that runs its program, or on the host."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.device.api import Device, EventFile
from landbridge.device.fence import Fence, as_fence
from landbridge.device.fences import wait_for_fence
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import Call, HostCall, ToVDevice, flattened
from landbridge.vm.device_binding import DeviceBinding


def sole_device(executable: Executable, bindings: Sequence[DeviceBinding]) -> Device | None:
    """Returns the device that does all work of a bound program; None where several do, or the CPU takes part."""
    devices = set[Device]()
    for each in flattened(executable.main.instructions):
        if isinstance(each, HostCall | ToVDevice):
            return None
        if isinstance(each, Call):
            known = 0 <= each.module < len(executable.modules) and 0 <= each.vdevice < len(bindings)
            if not known or not isinstance(executable.modules[each.module].image, DeviceImage):
                return None
            devices.add(bindings[each.vdevice].device)
    return devices.pop() if len(devices) == 1 else None


def wait_for(device: Device | None, fence: Fence | EventFile | int) -> None:
    """Order runs from now on after ``fence``: in the queue of ``device``, or by waiting here where that is None."""
    if device is None:
        as_fence(fence).wait()
    else:
        wait_for_fence(device, fence)
