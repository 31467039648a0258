"""OpenCL devices, through pyopencl: buffers, SVM and images, used in place where device and host share memory."""

from __future__ import annotations

import os
from importlib.util import find_spec

from landbridge.files.user_cache import user_cache

if find_spec("pyopencl") is None:
    from landbridge.devices.opencl.absent import AbsentDeviceAPI as OpenCLDeviceAPI
else:
    if user_cache() is None:  # the folder of pyopencl's generated files; without it, no kernel can be made
        os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
    from landbridge.devices.opencl.api import OpenCLDeviceAPI  # type: ignore[assignment]

__all__ = ["OpenCLDeviceAPI"]
