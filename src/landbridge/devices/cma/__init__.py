"""The device ``cma``: memory of the host that other devices import by file descriptor, from what the machine has."""

from landbridge.devices.cma.api import CmaDeviceAPI as CmaDeviceAPI
