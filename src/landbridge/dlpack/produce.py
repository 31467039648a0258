"""Export of our memory as DLPack capsules, which describe its elements and keep the bytes alive."""

from __future__ import annotations

import ctypes
from itertools import count
from typing import Any

from landbridge.device.registry import device_type
from landbridge.dlpack import capsules
from landbridge.dlpack.elements import Elements
from landbridge.dlpack.structs import (
    CPU,
    CUDA_TYPES,
    FLAG_IS_COPIED,
    FLAG_READ_ONLY,
    UNVERSIONED,
    VERSION,
    VERSIONED,
    Deleter,
    DLManagedTensor,
    DLManagedTensorVersioned,
    Managed,
)
from landbridge.dtypes import dtype
from landbridge.errors import InputError, ZeroCopyError
from landbridge.memory.export import Exporter
from landbridge.memory.storage import Storage
from landbridge.shapes.strides import reach

# What live exports own, by the key in their manager_ctx, until their consumer calls the deleter.
_exports: dict[int, tuple[Any, ...]] = {}
_keys = count(1)


def _delete_versioned(pointer: int) -> None:
    _exports.pop(DLManagedTensorVersioned.from_address(pointer).manager_ctx, None)


def _delete_unversioned(pointer: int) -> None:
    _exports.pop(DLManagedTensor.from_address(pointer).manager_ctx, None)


def _destroy(capsule: int) -> None:
    """Free what a capsule that nobody consumed still owns."""
    if capsules.dying_is_valid(capsule, VERSIONED):
        _delete_versioned(capsules.dying_pointer(capsule, VERSIONED))
    elif capsules.dying_is_valid(capsule, UNVERSIONED):
        _delete_unversioned(capsules.dying_pointer(capsule, UNVERSIONED))


_callbacks = (
    Deleter(_delete_versioned),
    Deleter(_delete_unversioned),
    ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_destroy),
)
for _callback in _callbacks:
    # Consumers may outlive this module while the interpreter exits: their callbacks are never freed.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_callback))
_versioned_deleter, _unversioned_deleter, _destructor = (
    ctypes.cast(callback, ctypes.c_void_p).value or 0 for callback in _callbacks
)


def dlpack_device(storage: Storage) -> tuple[int, int]:
    """Returns the DLPack (device type, index) of the memory of ``storage``."""
    known = storage.kind.dlpack_device
    device = storage.device
    return known if known is not None else (device_type(device.api), device.index)


def export_capsule(
    elements: Elements,
    *,
    readonly: bool,
    is_copy: bool,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
) -> object:
    """Returns a capsule over ``elements``, whose bytes live until its consumer is done.

    ``max_version`` from (1, 0) on gives the versioned form. ``dl_device`` must be the elements' own, or ``(kDLCPU, 0)``
    for coherent memory that the host can read; that form is also used without ``dl_device`` where the device's own form
    has no address, as on Vulkan. ``is_copy``: the capsule says that the memory was copied for this consumer. Raises
    ZeroCopyError (a BufferError) for what DLPack cannot express or the memory does not allow.
    """
    storage, name, shape, strides, byte_offset = elements
    own_device = dlpack_device(storage)
    region = storage.live_region
    by_host = storage.kind.host_readable and storage.kind.coherent
    # Memory without an address on its device can only be exported in the host's form, and numpy asks for no other.
    unnamed = CPU if by_host and storage.kind.ndim == 1 and not isinstance(region.space.handle, int) else own_device
    where = unnamed if dl_device is None else tuple(dl_device)
    _check_stream(where, stream)
    element = dtype(name)
    low, high = reach(shape, strides, 1)
    storage.wait(byte_offset + low * element.itemsize, byte_offset + high * element.itemsize, writes=False)
    if where == CPU and (own_device == CPU or by_host):
        data, offset = storage.address, byte_offset
    elif where == own_device:
        data, offset = region.space.handle, region.byte_offset + byte_offset
    else:
        raise ZeroCopyError(
            f"DLPack: {elements} is on device {own_device} and cannot be exported in place to {where}; copy it with "
            "t.to_device first"
        )
    if not isinstance(data, int):
        raise ZeroCopyError(f"DLPack: the memory of {elements} has no address that can be exported; copy it first")
    versioned = max_version is not None and max_version[0] >= 1
    if readonly and not versioned:
        raise ZeroCopyError(
            f"DLPack: {elements} is read-only, which an unversioned capsule cannot say; ask for max_version=(1, 0) "
            "or newer, or export a copy"
        )
    managed: Managed
    if versioned:
        managed = DLManagedTensorVersioned(major=VERSION[0], minor=VERSION[1], deleter=_versioned_deleter)
        managed.flags = (FLAG_READ_ONLY if readonly else 0) | (FLAG_IS_COPIED if is_copy else 0)
    else:
        managed = DLManagedTensor(deleter=_unversioned_deleter)
    key = managed.manager_ctx = next(_keys)
    described = managed.dl_tensor
    words = ctypes.c_int64 * max(len(shape), 1)
    extents, steps = words(*shape), words(*strides)
    described.data = None if 0 in shape else data
    described.byte_offset = 0 if 0 in shape else offset
    described.device_type, described.device_id = where
    described.ndim = len(shape)
    described.code, described.bits, described.lanes = element.dlpack_code, element.dlpack_bits, 1
    described.shape = ctypes.cast(extents, ctypes.POINTER(ctypes.c_int64))
    described.strides = ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64))
    _exports[key] = (managed, extents, steps, Exporter(storage, lambda: f"DLPack capsule {name}{list(shape)}"))
    return capsules.new(ctypes.addressof(managed), VERSIONED if versioned else UNVERSIONED, _destructor)


def _check_stream(where: tuple[int, ...], stream: int | None) -> None:
    if where[0] in CUDA_TYPES:
        if stream == 0:
            raise InputError("DLPack: stream 0 is ambiguous on CUDA; use 1 (legacy default), 2 (per thread) or -1")
    elif stream is not None and not (where[0] == CPU[0] and stream == -1):
        raise InputError(f"DLPack: device {where} has no streams to exchange; pass stream=None")
