"""Import of DLPack capsules: the memory is borrowed until nothing uses it any more."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from struct import Struct
from sys import is_finalizing
from typing import Any, NamedTuple

from landbridge.device.api import Device, Region, Space
from landbridge.device.registry import device_of_type, device_type
from landbridge.dlpack import capsules
from landbridge.dlpack.elements import Elements
from landbridge.dlpack.structs import (
    FLAG_IS_COPIED,
    FLAG_READ_ONLY,
    HOST_TYPES,
    UNVERSIONED,
    USED,
    VERSION,
    VERSIONED,
    Deleter,
)
from landbridge.dtypes import dtype, from_dlpack_type
from landbridge.errors import InputError, ZeroCopyError
from landbridge.memory.borrowed import borrow_host
from landbridge.memory.storage import Storage
from landbridge.shapes.strides import check_shape, reach, row_major


def import_object(x: Any, *, device: Device | None = None, copy: bool | None = None) -> Elements:
    """Returns the elements of ``x``, borrowed.

    A producer whose memory is not on ``device`` is asked to export it there in place; when it cannot, the elements are
    where the memory is. ``copy=False`` is passed on, and a producer that copied all the same is refused. Raises
    InputError for an object without ``__dlpack__``, ZeroCopyError for one that refuses.
    """
    export = getattr(x, "__dlpack__", None)
    if export is None:
        raise InputError(f"a {type(x).__name__} has no __dlpack__; give an array, or use lb.asarray")
    request: dict[str, Any] = {"max_version": VERSION}
    if copy is False:
        request["copy"] = False
    capsule = None
    if device is not None and (where := _elsewhere(x, device)) is not None:
        with suppress(BufferError, InputError, TypeError, ValueError):
            capsule = export(**request, dl_device=where)
    try:
        try:
            capsule = capsule or export(**request)
        except TypeError:  # a producer older than DLPack 1.0 has no such parameters
            capsule = export()
    except BufferError as error:
        raise ZeroCopyError(f"DLPack: {type(x).__name__} refused to export its memory: {error}") from error
    return import_capsule(capsule, copy=copy)


def _elsewhere(x: Any, device: Device) -> tuple[int, int] | None:
    """Returns the DLPack (type, index) of ``device`` when ``x`` is on another one, else None."""
    wanted = device.memory_kind().dlpack_device or (device_type(device.api), device.index)
    try:
        return None if tuple(x.__dlpack_device__()) == wanted else wanted
    except (AttributeError, TypeError):
        return None


def import_capsule(capsule: object, *, copy: bool | None = None) -> Elements:
    """Returns the elements that ``capsule`` describes, borrowed; consumes it, even when it cannot be used."""
    name = VERSIONED if capsules.is_valid(capsule, VERSIONED) else UNVERSIONED
    if name is UNVERSIONED and not capsules.is_valid(capsule, UNVERSIONED):
        raise InputError("this is no DLPack capsule, or it was consumed before; ask the producer for another one")
    pointer = capsules.pointer(capsule, name)
    # One read of the whole struct: ctypes takes longer for each field.
    if name is VERSIONED:
        major, minor, _, deleter, flags, *described = _VERSIONED_FIELDS.unpack(
            ctypes.string_at(pointer, _VERSIONED_FIELDS.size)
        )
    else:
        *described, _, deleter = _UNVERSIONED_FIELDS.unpack(ctypes.string_at(pointer, _UNVERSIONED_FIELDS.size))
        (major, minor), flags = VERSION, 0
    capsules.rename(capsule, USED[name])
    owner = _Borrowed(pointer, deleter)
    if major != VERSION[0]:
        raise InputError(f"the producer wrote DLPack {major}.{minor}; we read {VERSION[0]}.x")
    if copy is False and flags & FLAG_IS_COPIED:
        raise ZeroCopyError("from_dlpack(copy=False): the producer copied its memory; allow a copy")
    return _elements(_Described(*described), owner, readonly=bool(flags & FLAG_READ_ONLY))


_MOST_DIMENSIONS = 64  # as numpy does
_ADDRESSES = 1 << 64


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
    """The memory of a producer, which its deleter releases when nothing uses it any more."""

    __slots__ = ("_deleter", "_pointer")

    def __init__(self, pointer: int, deleter: int) -> None:
        self._pointer = pointer
        self._deleter = deleter

    def __del__(self, is_finalizing: Callable[[], bool] = is_finalizing) -> None:
        # While the interpreter exits the producer may be gone already, as this module's names may be, and the system
        # takes the memory back.
        if self._deleter and not is_finalizing():
            Deleter(self._deleter)(self._pointer)


def _elements(described: _Described, owner: _Borrowed, *, readonly: bool) -> Elements:
    if not 0 <= described.ndim <= _MOST_DIMENSIONS or (described.ndim and not described.shape):
        raise InputError(f"DLPack: the producer wrote {described.ndim} dimensions and a shape at {described.shape:#x}")
    name = from_dlpack_type(described.code, described.bits, described.lanes)
    itemsize = dtype(name).itemsize
    shape = check_shape(_int64s(described.shape, described.ndim), name)
    dense = row_major(shape)
    strides = dense
    if described.strides and 0 not in shape:
        # the stride of an extent of 1, or of no elements, means nothing
        written = zip(shape, _int64s(described.strides, described.ndim), dense, strict=True)
        strides = tuple(owned if extent == 1 else stride for extent, stride, owned in written)
    low, high = (end * itemsize for end in reach(shape, strides))
    base, offset = described.data, described.byte_offset
    if described.device_type in HOST_TYPES:
        address = base + offset if high else 0  # an address of no bytes means nothing
        if high and not (base and address + low > 0 and address + high < _ADDRESSES):
            raise InputError(
                f"DLPack: the producer wrote address {base:#x} and byte offset {offset} for {name}{list(shape)} with "
                f"strides {strides}, which is outside of memory"
            )
        if address % itemsize:
            raise ZeroCopyError(
                f"DLPack: elements of {itemsize} bytes at {address:#x} are not at a multiple of their size; "
                "copy them first"
            )
        storage = borrow_host(address + low, high - low, owner, readonly=readonly)
        return Elements(storage, name, shape, strides, -low)
    device = device_of_type(described.device_type, described.device_id)
    # The producer's allocation begins at or before its data: we borrow from there to the last element.
    storage = Storage(
        Region(Space(device, "global", base)), device.memory_kind(), offset + high, readonly=readonly, owner=owner
    )
    return Elements(storage, name, shape, strides, offset)


def _int64s(address: int, count: int) -> tuple[int, ...]:
    return _int64_fields(count).unpack(ctypes.string_at(address, 8 * count)) if count else ()


@cache
def _int64_fields(count: int) -> Struct:
    return Struct(f"={count}q")
