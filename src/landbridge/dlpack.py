"""DLPack 1.x through ctypes: capsules that others read our memory by, and Tensors over theirs. Nothing is copied.

``DLManagedTensorVersioned`` when the consumer takes one, else the unversioned form, which cannot say read-only
and is therefore refused for read-only memory.
"""

from __future__ import annotations

import ctypes
from functools import cache
from itertools import count
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from landbridge.device.registry import device_of_type, device_type
from landbridge.device.space import Region, Space
from landbridge.dtypes import dtype, from_dlpack_type
from landbridge.errors import InputError, ZeroCopyError
from landbridge.memory.export import Exporter
from landbridge.memory.storage import Storage, borrow_host
from landbridge.shape import check_shape, dense_bytes, row_major

if TYPE_CHECKING:
    from landbridge.tensor import Tensor

#: The version we write, and the newest we read.
VERSION = (1, 1)
CPU = (1, 0)  # (kDLCPU, 0)
FLAG_READ_ONLY = 1
FLAG_IS_COPIED = 2

_HOST_TYPES = (1, 3, 11)  # kDLCPU, kDLCUDAHost, kDLROCMHost: addresses the host can use
_CUDA_TYPES = (2, 13)  # kDLCUDA, kDLCUDAManaged


class DLTensor(ctypes.Structure):
    """``DLTensor`` of dlpack.h, its nested DLDevice and DLDataType written out (the layout is the same)."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DLManagedTensor(ctypes.Structure):
    """The unversioned form."""

    _fields_ = (("dl_tensor", DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class DLManagedTensorVersioned(ctypes.Structure):
    """The form since DLPack 1.0."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", DLTensor),
    )


_Managed = DLManagedTensor | DLManagedTensorVersioned

_api = ctypes.pythonapi
_capsule_new = _api.PyCapsule_New
_capsule_new.restype = ctypes.py_object
_capsule_new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_capsule_pointer = _api.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_capsule_is = _api.PyCapsule_IsValid
_capsule_is.restype = ctypes.c_int
_capsule_is.argtypes = (ctypes.py_object, ctypes.c_char_p)
_capsule_rename = _api.PyCapsule_SetName
_capsule_rename.restype = ctypes.c_int
_capsule_rename.argtypes = (ctypes.py_object, ctypes.c_char_p)

# A destructor gets the capsule while it is being deallocated: the raw pointer must not become a Python object.
_dying_is = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_dying_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))

_VERSIONED = b"dltensor_versioned"
_UNVERSIONED = b"dltensor"
# A capsule keeps a pointer to its name, not a copy.
_USED = {_VERSIONED: b"used_dltensor_versioned", _UNVERSIONED: b"used_dltensor"}

# What lives exports own, by the key in their manager_ctx, until their consumer calls the deleter.
_exports: dict[int, tuple[Any, ...]] = {}
_keys = count(1)


def _delete_versioned(pointer: int) -> None:
    _exports.pop(DLManagedTensorVersioned.from_address(pointer).manager_ctx, None)


def _delete_unversioned(pointer: int) -> None:
    _exports.pop(DLManagedTensor.from_address(pointer).manager_ctx, None)


def _destroy(capsule: int) -> None:
    """Free what a capsule that nobody consumed still owns."""
    if _dying_is(capsule, _VERSIONED):
        _delete_versioned(_dying_pointer(capsule, _VERSIONED))
    elif _dying_is(capsule, _UNVERSIONED):
        _delete_unversioned(_dying_pointer(capsule, _UNVERSIONED))


_callbacks = (
    _Deleter(_delete_versioned),
    _Deleter(_delete_unversioned),
    ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_destroy),
)
for _callback in _callbacks:
    # Consumers may outlive this module while the interpreter exits: their callbacks are never freed.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_callback))
_versioned_deleter, _unversioned_deleter, _destructor = (
    ctypes.cast(callback, ctypes.c_void_p).value for callback in _callbacks
)


def dlpack_device(tensor: Tensor) -> tuple[int, int]:
    """The DLPack (device type, index) of the memory of ``tensor``."""
    known = tensor.storage.kind.dlpack_device
    device = tensor.device
    return known if known is not None else (device_type(device.api), device.index)


def export_capsule(
    tensor: Tensor,
    *,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> object:
    """A capsule over the bytes of ``tensor``, which live until its consumer is done.

    ``max_version`` from (1, 0) on gives the versioned form. ``dl_device`` must be the tensor's own, or
    ``(kDLCPU, 0)`` for coherent memory the host can read. ``copy=True`` exports a copy and says so.
    Raises ZeroCopyError (a BufferError) for what DLPack cannot say or the memory does not allow.
    """
    own = dlpack_device(tensor)
    where = own if dl_device is None else tuple(dl_device)
    _check_stream(where, stream)
    if copy:
        tensor = tensor.copy()
    storage = tensor.storage
    region = storage.live_region
    start, stop = tensor.byte_range
    storage.wait(start, stop, writes=False)
    if where == CPU and (own == CPU or (storage.kind.host_readable and storage.kind.coherent)):
        data, offset = storage.address, tensor.byte_offset
    elif where == own:
        data, offset = region.space.handle, region.byte_offset + tensor.byte_offset
    else:
        raise ZeroCopyError(
            f"DLPack: {tensor!r} is on device {own} and cannot be exported in place to {where}; copy it with "
            "t.to_device first"
        )
    if not isinstance(data, int):
        raise ZeroCopyError(f"DLPack: the memory of {tensor!r} has no address that can be exported; copy it first")
    versioned = max_version is not None and max_version[0] >= 1
    if tensor.readonly and not versioned:
        raise ZeroCopyError(
            f"DLPack: {tensor!r} is read-only, which an unversioned capsule cannot say; ask for max_version=(1, 0) "
            "or newer, or export a copy"
        )
    managed: _Managed
    if versioned:
        managed = DLManagedTensorVersioned(major=VERSION[0], minor=VERSION[1], deleter=_versioned_deleter)
        managed.flags = (FLAG_READ_ONLY if tensor.readonly else 0) | (FLAG_IS_COPIED if copy else 0)
    else:
        managed = DLManagedTensor(deleter=_unversioned_deleter)
    name, shape = tensor.dtype, tensor.shape  # not the tensor: the export would keep it alive
    key = managed.manager_ctx = next(_keys)
    described = managed.dl_tensor
    element = dtype(tensor.dtype)
    extents = (ctypes.c_int64 * max(tensor.ndim, 1))(*tensor.shape)
    strides = (ctypes.c_int64 * max(tensor.ndim, 1))(*tensor.strides)
    described.data = None if tensor.size == 0 else data
    described.byte_offset = 0 if tensor.size == 0 else offset
    described.device_type, described.device_id = where
    described.ndim = tensor.ndim
    described.code, described.bits, described.lanes = element.dlpack_code, element.dlpack_bits, 1
    described.shape = ctypes.cast(extents, ctypes.POINTER(ctypes.c_int64))
    described.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
    _exports[key] = (managed, extents, strides, Exporter(storage, lambda: f"DLPack capsule {name}{list(shape)}"))
    return _capsule_new(ctypes.addressof(managed), _VERSIONED if versioned else _UNVERSIONED, _destructor)


def import_object(x: Any, *, copy: bool | None = None) -> Tensor:
    """The memory of ``x`` as a Tensor that borrows it.

    ``copy=False`` is passed on, and a producer that copied all the same is refused. Raises InputError for an
    object without ``__dlpack__``.
    """
    if not hasattr(x, "__dlpack__"):
        raise InputError(f"a {type(x).__name__} has no __dlpack__; give an array, or use lb.asarray")
    request: dict[str, Any] = {"max_version": VERSION}
    if copy is False:
        request["copy"] = False
    try:
        try:
            capsule = x.__dlpack__(**request)
        except TypeError:  # a producer from before DLPack 1.0 has no such parameters
            capsule = x.__dlpack__()
    except BufferError as error:
        return _import_unsigned(x, error)
    return import_capsule(capsule, copy=copy)


def import_capsule(capsule: object, *, copy: bool | None = None) -> Tensor:
    """The memory that ``capsule`` describes as a Tensor; consumes it, even when it cannot be used."""
    name = _VERSIONED if _capsule_is(capsule, _VERSIONED) else _UNVERSIONED
    if name is _UNVERSIONED and not _capsule_is(capsule, _UNVERSIONED):
        raise InputError("this is no DLPack capsule, or it was consumed before; ask the producer for another one")
    pointer = _capsule_pointer(capsule, name)
    # One read of the whole struct: ctypes takes longer for each field.
    if name is _VERSIONED:
        major, minor, _, deleter, flags, *described = _VERSIONED_FIELDS.unpack(
            ctypes.string_at(pointer, _VERSIONED_FIELDS.size)
        )
    else:
        *described, _, deleter = _UNVERSIONED_FIELDS.unpack(ctypes.string_at(pointer, _UNVERSIONED_FIELDS.size))
        (major, minor), flags = VERSION, 0
    _capsule_rename(capsule, _USED[name])
    owner = _Borrowed(pointer, deleter)
    if major != VERSION[0]:
        raise InputError(f"the producer wrote DLPack {major}.{minor}; we read {VERSION[0]}.x")
    if copy is False and flags & FLAG_IS_COPIED:
        raise ZeroCopyError("from_dlpack(copy=False): the producer copied its memory; allow a copy")
    return _tensor_over(_Described(*described), owner, readonly=bool(flags & FLAG_READ_ONLY))


class _Described(NamedTuple):
    """The fields of a ``DLTensor``, in order."""

    data: int
    device_type: int
    device_id: int
    ndim: int
    code: int
    bits: int
    lanes: int
    shape: int
    strides: int
    byte_offset: int


_TENSOR_FIELDS = "QiiiBBHQQQ"
_VERSIONED_FIELDS = Struct("=IIQQQ" + _TENSOR_FIELDS)
_UNVERSIONED_FIELDS = Struct("=" + _TENSOR_FIELDS + "QQ")


class _Borrowed:
    """Memory of a producer, given back by its deleter when nothing uses it any more."""

    __slots__ = ("_deleter", "_pointer")

    def __init__(self, pointer: int, deleter: int) -> None:
        self._pointer = pointer
        self._deleter = deleter

    def __del__(self) -> None:
        if self._deleter:
            _Deleter(self._deleter)(self._pointer)


def _tensor_over(described: _Described, owner: _Borrowed, *, readonly: bool) -> Tensor:
    from landbridge.tensor import Tensor

    name = from_dlpack_type(described.code, described.bits, described.lanes)
    itemsize = dtype(name).itemsize
    shape = check_shape(_int64s(described.shape, described.ndim), name)
    dense = row_major(shape)
    strides = _int64s(described.strides, described.ndim) if described.strides else dense
    low = high = 0
    if strides == dense:
        strides = dense
        high = dense_bytes(shape, name)
    elif 0 not in shape:
        spans = [(extent - 1) * stride * itemsize for extent, stride in zip(shape, strides, strict=True)]
        low, high = sum(s for s in spans if s < 0), sum(s for s in spans if s > 0) + itemsize
    base, offset = described.data, described.byte_offset
    if described.device_type in _HOST_TYPES:
        address = base + offset
        if address % itemsize:
            raise ZeroCopyError(
                f"DLPack: elements of {itemsize} bytes at {address:#x} are not at a multiple of their size; "
                "copy them first"
            )
        storage = borrow_host(address + low, high - low, owner, readonly=readonly)
        return Tensor(storage, name, shape, None if strides is dense else strides, -low)
    device = device_of_type(described.device_type, described.device_id)
    # The producer's allocation begins somewhere at or before its data: from there to the last element is ours.
    storage = Storage(
        Region(Space(device, "global", base)), device.memory_kind(), offset + high, readonly=readonly, owner=owner
    )
    return Tensor(storage, name, shape, strides, offset)


def _int64s(address: int, count: int) -> tuple[int, ...]:
    return _int64_fields(count).unpack(ctypes.string_at(address, 8 * count)) if count else ()


@cache
def _int64_fields(count: int) -> Struct:
    return Struct(f"={count}q")


def _import_unsigned(x: Any, error: BufferError) -> Tensor:
    """numpy cannot describe ml_dtypes to DLPack: its arrays are borrowed as they are."""
    import numpy as np

    from landbridge.tensor import Tensor

    if isinstance(x, np.ndarray):
        return Tensor.from_numpy_view(x)
    raise ZeroCopyError(f"DLPack: {type(x).__name__} refused to export its memory: {error}") from error


def _check_stream(where: tuple[int, ...], stream: int | None) -> None:
    if where[0] in _CUDA_TYPES:
        if stream == 0:
            raise InputError("DLPack: stream 0 is ambiguous on CUDA; use 1 (legacy default), 2 (per thread) or -1")
    elif stream is not None and not (where[0] == CPU[0] and stream == -1):
        raise InputError(f"DLPack: device {where} has no streams to exchange; pass stream=None")
