"""The first OpenCL device, or the reason why there is none."""

from __future__ import annotations

import pytest

from landbridge.device.api import Device
from tests.devices.present import first_instance


@pytest.fixture(scope="session")
def device() -> Device:
    return first_instance("opencl")
