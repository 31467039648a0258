"""How much host memory devices have imported."""

from __future__ import annotations

from landbridge.device.api import Device
from landbridge.memory import imports


def imported_ranges(device: Device) -> int:
    """How many ranges ``device`` has imported now."""
    return sum(key[0] is device.state for key in list(imports._imports))
