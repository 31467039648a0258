"""The device ``cma``: host memory, from several sources, that other devices import by file descriptor."""

from landbridge.devices.cma.api import CmaDeviceAPI as CmaDeviceAPI
