"""The Tensor class: a typed view of a Storage."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from landbridge.device.api import Device, Stream
from landbridge.device.protocols import AccessMode
from landbridge.device.registry import device as find_device
from landbridge.dtypes import dtype as dtype_facts
from landbridge.errors import InputError, ZeroCopyError
from landbridge.memory.accesses import open_views
from landbridge.memory.borrowed import borrow_array, host_device
from landbridge.memory.extents import Extent, extents
from landbridge.memory.holders import named_holder
from landbridge.memory.host_array import address_of_known
from landbridge.memory.host_use import warn_if_slow
from landbridge.memory.memory_barriers import barriers_of_array
from landbridge.memory.storage import Storage
from landbridge.shapes.physical import separators_for
from landbridge.shapes.strides import check_shape, check_strides, dense_bytes, reach, row_major, same_layout
from landbridge.tensor.borrowed_array import known_names, name_of, strides_of
from landbridge.tensor.copy import copy_tensor, copy_to
from landbridge.tensor.exports import array_over, check_host_reads, check_packed_argument, in_dtype
from landbridge.tensor.host_view import HostView as _HostView
from landbridge.tensor.layout import check_flat, strides_in_rows
from landbridge.tensor.pickling import CopiedByValue
from landbridge.tensor.reading import Readable
from landbridge.tensor.typed_view import text_of

if TYPE_CHECKING:
    from typing import Self

    import tvm_ffi

_new, _ndarray = object.__new__, np.ndarray  # names in this module are faster to look up

HostView: TypeAlias = "_HostView[Tensor]"


@named_holder
class Tensor(Readable, CopiedByValue):
    """A view of ``shape`` elements of ``dtype`` at ``byte_offset`` of ``storage``; many Tensors may view one Storage.

    ``strides`` count elements. A Tensor over memory of others is read-only when its owner is.
    """

    __slots__ = (
        "__weakref__",
        "_address",
        "_array",
        "_byte_offset",
        "_packed",
        "_shape",
        "_storage",
        "_strides",
        "axis_separators",
        "dtype",
        "readonly",
    )

    dtype: str
    """The element type by name, as in ``landbridge.dtypes``."""
    readonly: bool
    """True when nobody may write through this Tensor."""
    axis_separators: tuple[int, ...]
    """The physical axes that make each dimension of an n-D space; empty for flat memory."""
    _shape: tuple[int, ...]
    #: None while the elements are dense and row-major.
    _strides: tuple[int, ...] | None
    _byte_offset: int
    #: None until somebody asks for the Storage of a borrowed array: most Tensors never need it.
    _storage: Storage | None
    #: The host address of the first element of a borrowed array, once it was asked for.
    _address: int | None
    #: An array over the bytes (the borrowed one at first) and a PackedFunc's argument, cached for the next export.
    _array: np.ndarray[Any, Any] | None
    _packed: tvm_ffi.Tensor | None

    def __init__(
        self,
        storage: Storage,
        dtype: str,
        shape: Sequence[int],
        strides: Sequence[int] | None = None,
        byte_offset: int = 0,
        *,
        readonly: bool = False,
        axis_separators: tuple[int, ...] = (),
    ) -> None:
        """Make a view of ``storage``; raises InputError when an element lies outside it, or its kind allows no tensor.

        ``strides`` None: dense, in an n-D space within each row.
        """
        self.dtype = dtype
        self._shape = check_shape(shape, dtype)
        self._strides = None if strides is None else check_strides(strides, self._shape)
        self._byte_offset = byte_offset
        self._storage = storage
        self._address = self._array = self._packed = None
        self.readonly = readonly or storage.readonly
        self.axis_separators = axis_separators
        if storage.kind.ndim > 1 or axis_separators:
            self._strides = strides_in_rows(storage, dtype, self._shape, self._strides, byte_offset, axis_separators)
        elif strides is not None or byte_offset or dense_bytes(self._shape, dtype) > storage.nbytes:
            check_flat(storage, dtype, self._shape, self._strides, byte_offset)

    @classmethod
    def from_numpy_view(cls, array: np.ndarray[Any, Any]) -> Self:
        """Returns a Tensor that borrows the memory of ``array`` for as long as it lives; read-only when ``array`` is.

        Raises InputError for a dtype without a name here, ZeroCopyError for elements in another byte order or not at
        multiples of their size.
        """
        self = _new(cls)
        self.dtype = known_names.get(array.dtype) or name_of(array.dtype)
        # We keep a view of our own: the caller may change the shape of his array later.
        self._array = owned = array.view() if type(array) is _ndarray else array.view(_ndarray)
        self._shape = owned.shape
        self._storage = self._strides = self._address = self._packed = None
        self._byte_offset = 0
        self.axis_separators = ()
        if type(array) is not _ndarray and barriers_of_array(array) is not None:
            # its view need not keep the array alive
            self._storage = borrow_array(array, readonly=not array.flags.writeable)
        flags = array.flags
        if flags.carray:
            self.readonly = False
        else:
            self.readonly = not flags.writeable
            if not flags.c_contiguous or not flags.aligned:
                self._strides, self._byte_offset = strides_of(owned)
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the extents, one for each dimension."""
        return self._shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Returns the distances between neighbours of each dimension, in elements."""
        return row_major(self._shape) if self._strides is None else self._strides

    @property
    def byte_offset(self) -> int:
        """Returns the position of the first element in the storage, in bytes."""
        return self._byte_offset

    @property
    def storage(self) -> Storage:
        """Returns the Storage that this is a view of."""
        if self._storage is None:
            assert self._array is not None  # one of the two exists
            self._storage = borrow_array(self._array, readonly=self.readonly)
        return self._storage

    @property
    def ndim(self) -> int:
        """Returns the number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Returns the number of elements."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Returns the bytes of one element."""
        return dtype_facts(self.dtype).itemsize

    @property
    def nbytes(self) -> int:
        """Returns the bytes of all elements, without gaps."""
        return dense_bytes(self.shape, self.dtype)

    @property
    def device(self) -> Device:
        """Returns the device whose memory this is."""
        return self.storage.device

    @property
    def scope(self) -> str:
        """Returns the memory scope on that device."""
        return self.storage.kind.scope

    @property
    def is_contiguous(self) -> bool:
        """Returns whether the elements are dense and row-major."""
        return self._strides is None or same_layout(self._shape, self._strides, row_major(self._shape))

    @property
    def byte_range(self) -> tuple[int, int]:
        """Returns the half-open range of bytes of the storage that the elements lie in."""
        start = self._byte_offset
        if self._strides is None:
            return start, start + self.nbytes
        low, high = reach(self._shape, self._strides)
        return start + low * self.itemsize, start + high * self.itemsize

    @property
    def data_address(self) -> int:
        """Returns the host address of the first element; raises HostViewError for memory the host cannot address."""
        if self._storage is not None or self._array is None:
            return self.storage.address + self._byte_offset
        if self._address is None:
            self._address = address_of_known(self._array)
        return self._address

    def extents(self, device: Device | None = None) -> tuple[Extent, ...]:
        """Returns the addresses of the elements as ``device`` (None: the Tensor's) uses them, for code that programs
        it.

        The pieces are ``(address, nbytes)``, in order, and valid as long as the Tensor lives. Empty where no address is
        known, and for memory in rows. Raises DeviceLostError, UseAfterFreeError.
        """
        self.storage.check_device()
        return extents(self.storage, device or self.device, *self.byte_range)

    def host_view(self, mode: AccessMode | None = None) -> HostView:
        """Returns the host's view of the bytes: a ``with`` calls the barriers, a lasting one leaves them to you; see
        HostView.

        ``mode`` is "r", "w" or "rw"; None is what the Tensor allows. Raises HostViewError; reading memory past the
        host's caches is a SlowMemoryWarning.
        """
        mode = mode or ("r" if self.readonly else "rw")
        if mode != "w":
            warn_if_slow(self.storage, lambda: f"a host view of {self!r}")
        return _HostView(self, mode)

    def to_device(
        self,
        device: Device | str,
        /,
        *,
        stream: Stream | None = None,
        scope: str | None = None,
        axis_separators: Sequence[int] | None = None,
    ) -> Tensor:
        """Returns this Tensor if it is on ``device`` already, else a copy there, which the ledger calls ``to_device``.

        ``scope``: the memory of the device that it must be in; None is any, and "global" for a copy. In a scope of more
        than one dimension ``axis_separators`` are as in ``lb.empty``.
        """
        target = find_device(device)
        if scope is None:
            return self if target == self.device else copy_to(self, target, "to_device", stream)
        kind = target.memory_kind(scope)
        separators = separators_for(self.shape, axis_separators, kind)
        if target == self.device and kind.scope == self.scope and separators == self.axis_separators:
            return self
        return copy_to(self, target, "to_device", stream, kind.scope, separators)

    def copy(self) -> Tensor:
        """Returns a dense copy on the same device; the ledger's cause is ``copy``."""
        return copy_to(self, self.device, "copy")

    def copy_from(self, source: Tensor | np.ndarray[Any, Any], /, *, stream: Stream | None = None) -> None:
        """Copy the elements of ``source``, of the same shape and dtype, into the memory of this Tensor.

        Both may lie on any device, in any scope. Waits as ``to_device`` does; the ledger's cause is ``copy_from``.
        Raises InputError, and copies nothing, where the two do not fit or overlap, or this Tensor is read-only.
        """
        if isinstance(source, np.ndarray):
            source = Tensor.from_numpy_view(source)
        if not isinstance(source, Tensor):
            raise InputError(f"copy_from takes a Tensor or an array, not {type(source).__name__}; lb.asarray makes one")
        copy_tensor(self, source, cause="copy_from", stream=stream)

    def view(self, shape: Sequence[int]) -> Tensor:
        """Returns a Tensor over the same bytes with another shape; raises ZeroCopyError unless this one is dense."""
        new = check_shape(shape, self.dtype)
        if prod(new) != self.size:
            raise InputError(f"{self!r} has {self.size} elements, shape {new} has {prod(new)}; they must be equal")
        if self.axis_separators:
            raise ZeroCopyError(f"{self!r} lies in rows: another shape needs a copy; use t.copy()")
        if not self.is_contiguous:
            raise ZeroCopyError(f"{self!r} has strides {self.strides}: another shape needs a copy; use t.copy()")
        return Tensor(self.storage, self.dtype, new, None, self.byte_offset, readonly=self.readonly)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Returns a numpy array over the bytes, without a copy unless ``copy`` or another ``dtype`` requires one.

        Raises HostViewError, with what to do instead, when the host cannot read them in place, and ZeroCopyError when
        ``copy=False`` is impossible.
        """
        array = self._array
        if array is not None and dtype is None and not copy:
            storage = self._storage
            if storage is None or storage.is_ready:
                return array.view()
        return in_dtype(self, exported_array(self), dtype, copy)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Returns a DLPack capsule over the bytes; see ``landbridge.dlpack.export_capsule``."""
        array = self._array
        if array is not None and stream is None and dl_device is None and not copy:
            storage = self._storage
            # numpy makes capsules for what it can describe, in a hundredth of the time it takes here.
            if array.size and (storage is None or storage.is_ready):
                try:
                    return array.__dlpack__(max_version=max_version) if max_version else array.__dlpack__()
                except (BufferError, TypeError):
                    pass  # a dtype of ml_dtypes, or read-only; numpy before 2.1 knows no versions
        from landbridge.dlpack import Elements, export_capsule

        source = self.copy() if copy else self
        created = export_capsule(
            Elements(source.storage, source.dtype, source.shape, source.strides, source.byte_offset),
            readonly=source.readonly,
            is_copy=bool(copy),
            stream=stream,
            max_version=max_version,
            dl_device=dl_device,
        )
        if array is None and self.size and self.device == host_device():
            exported_array(self)  # the next one is numpy's
        return created

    def __dlpack_device__(self) -> tuple[int, int]:
        """Returns the DLPack device type and index of the memory."""
        if self._storage is None:
            return (1, 0)
        from landbridge.dlpack import dlpack_device

        return dlpack_device(self.storage)

    def __tvm_ffi_object__(self) -> tvm_ffi.Tensor:
        """Returns the Tensor as tvm-ffi passes it to a PackedFunc: over the same bytes, and cached.

        Raises ZeroCopyError for a read-only Tensor, as a PackedFunc has no such flag, and HostAccessError while an open
        host view conflicts.
        """
        packed, storage = self._packed, self._storage
        if packed is not None and storage is not None and storage.is_ready and not open_views:
            return packed
        check_packed_argument(self)
        if packed is None:
            import tvm_ffi

            packed = self._packed = tvm_ffi.from_dlpack(self)
            self.storage.add_cache(self)
        return packed

    def drop_cached(self) -> None:
        """Release what is cached for the next export, so that only exports held by others keep the bytes in use."""
        self._packed = None
        if self._storage is not None:  # without a storage, the array is the memory
            self._array = None

    def let_go(self) -> None:
        """Deprecated: the former name of ``drop_cached``."""
        warnings.warn("Tensor.let_go is deprecated; call Tensor.drop_cached", DeprecationWarning, stacklevel=2)
        self.drop_cached()

    def __repr__(self) -> str:
        return str(text_of(self))


def moved(tensor: Tensor, byte_offset: int) -> Tensor:
    """Returns dense ``tensor`` at another offset of its Storage, where the caller knows that it fits."""
    result = _new(Tensor)
    result.dtype, result._shape, result._storage = tensor.dtype, tensor._shape, tensor.storage
    result._byte_offset, result.readonly, result.axis_separators = byte_offset, tensor.readonly, ()
    result._strides = result._address = result._array = result._packed = None
    return result


def over_new(array: np.ndarray[Any, Any], dtype: str, shape: tuple[int, ...], address: int) -> Tensor:
    """Returns a Tensor over the C-contiguous ``array`` at ``address``, which nobody else uses; checks nothing."""
    tensor = _new(Tensor)
    tensor._array, tensor.dtype, tensor._shape, tensor._address = array, dtype, shape, address
    tensor._storage = tensor._strides = tensor._packed = None
    tensor._byte_offset, tensor.readonly, tensor.axis_separators = 0, False, ()
    return tensor


def array_without_storage(value: Any) -> np.ndarray[Any, Any] | None:
    """Returns the numpy array of a Tensor whose Storage nobody has asked for yet; None for any other value.

    Such an array can be read without a wait, as no view of it exists.
    """
    return value._array if type(value) is Tensor and value._storage is None else None


def exported_array(tensor: Tensor, *, waits: bool = True) -> np.ndarray[Any, Any]:
    """Returns an array over host-readable coherent memory; ``tensor`` caches it where the memory is the host's own.

    ``waits``: whether to wait for writers of the bytes. Give others a view of the array. Raises HostViewError for other
    memory.
    """
    array, storage = tensor._array, tensor._storage
    if array is not None and (storage is None or storage.is_ready or (not waits and storage.region is not None)):
        return array
    check_host_reads(tensor, waits=waits)
    if array is None:
        element, shape = tensor.dtype, tensor.shape  # not the tensor: the export would keep it alive
        array = array_over(
            tensor,
            readonly=tensor.readonly or not tensor.storage.kind.host_writable,
            subject=lambda: f"numpy array or DLPack capsule over {element}{list(shape)}",
        )
        if tensor.device == host_device():
            tensor._array = array
            tensor.storage.add_cache(tensor)
    return array
