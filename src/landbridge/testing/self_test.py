"""The self-test of a device: copies bytes to it, within it, and back."""

from __future__ import annotations

import numpy as np

from landbridge.device.api import Device
from landbridge.tensor import asarray


def self_test(device: Device) -> str | None:
    """Returns None when ``device`` works, else the reason why not, in one line. Moves a few kilobytes."""
    values = np.arange(1000, dtype=np.int32)
    try:
        back = np.asarray(asarray(values, device=device, copy=True).copy().to_device("cpu"))
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}"
    return None if np.array_equal(back, values) else "bytes that were sent there came back changed"
