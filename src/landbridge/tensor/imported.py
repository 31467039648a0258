"""``import_tensor``: makes a host Tensor a Tensor of a device that uses the memory in place."""

from __future__ import annotations

from landbridge.device.api import Device
from landbridge.errors import ZeroCopyError
from landbridge.memory.borrowed import is_host_memory
from landbridge.memory.imports import import_range
from landbridge.tensor.copy import copy_to
from landbridge.tensor.tensor import Tensor


def import_tensor(tensor: Tensor, device: Device, *, writes: bool = True) -> Tensor:
    """Returns host ``tensor`` as a Tensor on ``device`` over the same bytes; it keeps their owner alive.

    Read-only memory is imported for reading. ``writes``: whether the device ever writes the memory; memory that it only
    reads may share granules with memory of others. Raises ZeroCopyError with the device's reason when it cannot import
    it.
    """
    if not is_host_memory(tensor.storage):
        raise ZeroCopyError(f"{tensor!r} is not memory of the host, which is what {device} can import")
    if tensor.axis_separators:
        raise ZeroCopyError(f"{tensor!r} lies in rows; {device} imports flat memory")
    start, stop = tensor.byte_range
    if start == stop:
        return copy_to(tensor, device, "import")  # of no bytes, which drivers import no memory of
    storage = import_range(tensor.storage, start, stop, device, readonly=tensor.readonly, writes=writes)
    return Tensor(storage, tensor.dtype, tensor.shape, tensor.strides, tensor.byte_offset - start)
