"""Checks devices: only the CPU of this host is available."""

from __future__ import annotations

from landbridge.onnxruntime.capi.onnxruntime_pybind11_state import Fail


def check_device(device_type: str, device_id: int) -> None:
    """Raises Fail for a device other than this host's CPU."""
    if device_type != "cpu" or device_id:
        raise Fail(
            f"device {device_type}:{device_id} is not there: landbridge.onnxruntime runs on cpu:0; on other devices "
            "compile and run with landbridge itself"
        )
