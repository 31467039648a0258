"""Tensors made from existing objects: arrays, DLPack producers, buffers and nested sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from landbridge.device.api import Device
from landbridge.device.protocols import MemoryImport
from landbridge.device.registry import device as find_device
from landbridge.dtypes import dtype_name, numpy_dtype
from landbridge.errors import InputError, ZeroCopyError
from landbridge.memory.borrowed import is_host_memory
from landbridge.tensor.copy import copy_to
from landbridge.tensor.host_view import HostView
from landbridge.tensor.imported import import_tensor
from landbridge.tensor.tensor import Tensor


def from_dlpack(x: Any, /, *, device: Device | str | None = None, copy: bool | None = None) -> Tensor:
    """Returns the memory of ``x``, any object with ``__dlpack__``, as a Tensor; ``copy`` as in ``asarray``.

    A producer on another device is first asked for its memory on ``device``; the memory is copied only if it cannot
    give that.
    """
    target = None if device is None else find_device(device)
    if isinstance(x, np.ndarray):
        tensor = Tensor.from_numpy_view(x)  # what its capsule would say, and for ml_dtypes, of which it has none
    else:
        from landbridge.dlpack import import_object

        tensor = Tensor(*import_object(x, device=target, copy=copy))
    if copy or (target is not None and target != tensor.device):
        return asarray(tensor, device=target, copy=copy)
    return tensor


def asarray(obj: Any, /, *, dtype: Any = None, device: Device | str | None = None, copy: bool | None = None) -> Tensor:
    """Returns ``obj`` as a Tensor: a Tensor, an array, anything with DLPack or the buffer protocol, or nested
    sequences.

    ``copy=None`` copies only when another ``dtype`` or ``device`` needs it, True always copies. False never copies: a
    ``device`` that can use memory of the host in place imports it, and the Tensor keeps it alive; write through
    ``host_view`` where the device does not see the host's writes by itself. Otherwise ZeroCopyError gives the reason.
    """
    tensor, fresh = _as_tensor(obj, copy)
    wanted = tensor.dtype if dtype is None else dtype_name(dtype)
    stays = device is None or find_device(device) == tensor.device
    if wanted == tensor.dtype and stays and (fresh or not copy):
        return tensor
    target = tensor.device if device is None else find_device(device)
    if copy is False:
        if wanted == tensor.dtype and is_host_memory(tensor.storage) and target.capability(MemoryImport) is not None:
            return import_tensor(tensor, target)
        raise ZeroCopyError(
            f"asarray(copy=False): {tensor!r} as {wanted} on {target} needs a copy; allow it with copy=None, or ask "
            "for the dtype and device it has"
        )
    if wanted != tensor.dtype:
        cast = Tensor.from_numpy_view(np.asarray(tensor.to_device("cpu"), dtype=numpy_dtype(wanted)))
        return cast.to_device(target)
    return copy_to(tensor, target, "asarray")


def _as_tensor(obj: Any, copy: bool | None) -> tuple[Tensor, bool]:
    """Returns ``obj`` as a Tensor, and whether its memory is already a copy."""
    if isinstance(obj, Tensor):
        return obj, False
    if isinstance(obj, HostView):
        return obj.tensor, False
    if isinstance(obj, np.ndarray):
        return Tensor.from_numpy_view(obj), False
    if hasattr(obj, "__dlpack__"):
        from landbridge.dlpack import import_object

        return Tensor(*import_object(obj, copy=copy)), False
    if hasattr(obj, "__array_interface__"):
        return Tensor.from_numpy_view(np.asarray(obj)), False
    try:
        return Tensor.from_numpy_view(np.asarray(memoryview(obj))), False
    except TypeError:
        pass
    if copy is False:
        raise ZeroCopyError(f"asarray(copy=False): a {type(obj).__name__} has no memory to view; allow a copy")
    try:
        array = np.array(obj)
    except ValueError as error:  # lists of several lengths
        raise InputError(f"asarray takes an array, or lists of equal lengths: {error}") from None
    if array.dtype == object or array.dtype.kind in "US":
        raise InputError(
            f"asarray takes an array, numbers or lists of numbers, not {type(obj).__name__}, of which numpy makes an "
            f"array of the unknown dtype {array.dtype}"
        )
    return Tensor.from_numpy_view(array), True
