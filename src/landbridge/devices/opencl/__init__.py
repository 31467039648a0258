"""OpenCL devices, through pyopencl: buffers, SVM and images, used in place where device and host share memory."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("pyopencl") is None:
    from landbridge.devices.opencl.absent import AbsentDeviceAPI as OpenCLDeviceAPI
else:
    from landbridge.devices.opencl.api import OpenCLDeviceAPI  # type: ignore[assignment]

__all__ = ["OpenCLDeviceAPI"]
