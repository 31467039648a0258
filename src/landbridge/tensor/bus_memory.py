"""``from_bus_address``: makes a Tensor of memory at a bus address, for the device that reaches it there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from landbridge.device.api import Device
from landbridge.device.import_source import BusAddress
from landbridge.device.memory_provider import MemoryProvider
from landbridge.device.registry import device as find_device
from landbridge.dtypes import dtype as dtype_facts
from landbridge.dtypes import dtype_name
from landbridge.errors import InputError
from landbridge.memory.borrowed import import_memory
from landbridge.shapes.strides import check_shape, check_strides, row_major, span
from landbridge.tensor.tensor import Tensor


def from_bus_address(
    address: int,
    shape: Sequence[int],
    dtype: Any,
    *,
    device: Device | str,
    host_address: int | None = None,
    strides: Sequence[int] | None = None,
    provider: MemoryProvider | None = None,
    owner: object = None,
) -> Tensor:
    """Returns a Tensor over the memory at bus ``address``, which ``device`` uses in place; it keeps ``owner`` alive.

    ``host_address``: where this process maps the memory; None where ``provider`` says, and where it is not mapped.
    ``strides`` count elements, None is dense. ``provider``: the barriers of the memory, of which the Tensor may be a
    part, and how the host reaches it, where host and device do not see each other's writes; None: those of the device.
    The caller guarantees that the bytes stay at the address. Raises InputError for a layout that is not legal, and
    ZeroCopyError when the device cannot use it.
    """
    name = dtype_name(dtype)
    extents = check_shape(shape, name)
    steps = row_major(extents) if strides is None else check_strides(strides, extents)
    where = find_device(device)
    if host_address is None and provider is not None and (mapped := provider.host_address()) is not None:
        begin = provider.device_address(where)
        host_address = mapped if begin is None else mapped + address - begin
    known = [address] if host_address is None else [address, host_address]
    if any(type(location) is not int or location < 0 for location in known) or any(step < 0 for step in steps):
        raise InputError(f"addresses {known} and strides {steps} of memory on a bus must be at least 0")
    source = BusAddress(address, host_address, span(extents, steps) * dtype_facts(name).itemsize)
    keep = owner if provider is None else (owner, provider)
    return Tensor(import_memory(where, source, "rw", keep, provider), name, extents, steps)
