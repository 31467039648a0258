"""Devices of drivers: the first one there is."""

from __future__ import annotations

from landbridge.device import registry
from landbridge.device.api import Device
from tests.selection.installed import missing, package


def first_instance(name: str) -> Device:
    if name == "opencl":
        package("pyopencl", "test")
    found = registry.devices(name)
    return found[0] if found else missing(f"a driver for {name} ({'; '.join(registry.discovery(name))})", "debian")
