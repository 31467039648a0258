"""Bytes to and from tensors of a device, whether the host sees its memory or not."""

from __future__ import annotations

import numpy as np

import landbridge as lb
from landbridge.device.api import Region


def filled(device: object, values: object, dtype: object = np.float32) -> lb.Tensor:
    """A new tensor on ``device``."""
    return lb.asarray(np.asarray(values, dtype), device=device, copy=True)


def region(tensor: lb.Tensor) -> Region:
    """Where ``tensor`` begins."""
    at = tensor.storage.live_region
    return Region(at.space, at.byte_offset + tensor.byte_offset)


def back(tensor: lb.Tensor) -> np.ndarray:
    """A copy of the values."""
    return np.asarray(tensor.to_device("cpu"))


def read(tensor: lb.Tensor) -> np.ndarray:
    """The values, through a view where the host has one."""
    if tensor.storage.kind.host_access == "none":
        return back(tensor)
    with tensor.host_view("r") as array:
        return array.copy()


def put(tensor: lb.Tensor, value: object) -> None:
    """Write ``value`` to all elements."""
    if tensor.storage.kind.host_access == "none":
        host = lb.asarray(np.full(tensor.shape, value, np.float32))
        api = tensor.device.api
        event = api.copy_data_from_to(region(host), region(tensor), tensor.nbytes, None, None)
        if event is not None:
            event.synchronize()
        return
    with tensor.host_view("w") as array:
        array[:] = value
