"""Devices of drivers: the first one there is, or the reason for skipping.

``LANDBRIDGE_EXPECTED_DEVICES`` names those that must be there, so that no driver is missing unnoticed in `.ci/run`.
"""

from __future__ import annotations

import os

import pytest

from landbridge.device import registry
from landbridge.device.device import Device


def first_instance(name: str) -> Device:
    found = registry.devices(name)
    if found:
        return found[0]
    reason = f"no {name} device: {'; '.join(registry.discovery(name))}"
    if name in os.environ.get("LANDBRIDGE_EXPECTED_DEVICES", "").split():
        pytest.fail(reason)
    pytest.skip(reason)
