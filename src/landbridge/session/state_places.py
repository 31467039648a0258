"""Where the memory of a State is when a device runs the program: memory that the application gives, on the device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from landbridge.device.protocols import Addresses, MemoryImport
from landbridge.dtypes import stored_dtype
from landbridge.errors import HostViewError, ZeroCopyError
from landbridge.executable.executable import Executable
from landbridge.memory.borrowed import is_host_memory
from landbridge.memory.extents import unreachable
from landbridge.session.session_options import BindOptions
from landbridge.session.state_sizes import shape_with
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.tensor.imported import import_tensor
from landbridge.vm.device_binding import DeviceBinding, bind_devices


def argument_places(executable: Executable, options: BindOptions) -> dict[str, DeviceBinding]:
    """Returns the memory of each input and output, by name, that is of a device, for a Session with ``options``."""
    functions = {"main": replace(executable.main, instructions=())}
    bindings = bind_devices(
        replace(executable, functions=functions), options.device, options.devices, options.memory_cfg
    )
    arguments = (*executable.main.inputs, *executable.main.outputs)
    found = {spec.name: bindings[spec.vdevice] for spec in arguments}
    return {name: binding for name, binding in found.items() if not binding.is_host or binding.is_other_device}


def on_device(subject: str, tensor: Tensor, binding: DeviceBinding) -> Tensor:
    """Returns ``tensor`` as memory that kernels of the device of ``binding`` read and write in place: itself, or host
    memory that the device imports.

    Raises ZeroCopyError, which names ``subject``, where it is neither.
    """
    device, scope = binding.device, binding.kind.scope
    way_out = f"give a Tensor of it, as lb.empty(..., device={str(device)!r}, scope={scope!r}) makes"
    if tensor.device != device and is_host_memory(tensor.storage) and device.capability(MemoryImport) is not None:
        try:
            tensor = import_tensor(tensor, device)
        except (ZeroCopyError, HostViewError) as error:
            raise ZeroCopyError(f"{subject}: {error}; {way_out}") from error
    if tensor.device != device or (binding.is_other_device and tensor.scope != scope):
        raise ZeroCopyError(f"{subject} is memory {tensor.scope!r} of {tensor.device}, not {binding}; {way_out}")
    if tensor.axis_separators:
        raise ZeroCopyError(f"{subject} lies in rows, and inputs and outputs lie in flat memory; {way_out}")
    if (problem := unreachable(tensor.storage, *tensor.byte_range)) is not None:
        raise ZeroCopyError(f"{subject}: {problem}; {way_out}")
    start, alignment = tensor.storage.live_region.byte_offset + tensor.byte_offset, binding.kind.offset_alignment
    if start % alignment and device.capability(Addresses) is None:
        raise ZeroCopyError(
            f"{subject} begins at byte {start} of its memory, and kernels of {device} take multiples of {alignment}; "
            f"{way_out}"
        )
    return tensor


def clear_behind(tensor: Tensor, axis: int, length: int) -> None:
    """Fill ``tensor`` with zeros along ``axis`` from ``length`` on: kernels of devices read all of the capacity and
    multiply what is not filled by 0, which is not 0 for what is no number.
    """
    shape = shape_with(tensor.shape, axis, tensor.shape[axis] - length)
    if tensor.storage.kind.host_access == "read_write":
        with tensor.host_view("rw") as array:
            array[(slice(None),) * axis + (slice(length, None),)] = 0
    elif 0 not in shape:
        start = tensor.byte_offset + length * tensor.strides[axis] * tensor.itemsize
        behind = Tensor(tensor.storage, tensor.dtype, shape, tensor.strides, start)
        copy_tensor(behind, Tensor.from_numpy_view(np.zeros(shape, stored_dtype(tensor.dtype))), cause="zeros")
