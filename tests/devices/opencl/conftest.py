"""The first OpenCL device, or the reason why there is none."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from landbridge.device.device import Device
from tests.devices.present import first_instance

# They look into the device's own modules; the others skip, or fail where the device has to be there.
collect_ignore = [] if find_spec("pyopencl") else ["test_discovery.py", "test_memory.py", "test_recording.py"]


@pytest.fixture(scope="session")
def device() -> Device:
    return first_instance("opencl")
