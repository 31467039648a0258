"""Tensor: a typed view of a Storage."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from landbridge.device.device import Device
from landbridge.device.protocols import AccessMode
from landbridge.device.registry import device as find_device
from landbridge.device.stream import Stream
from landbridge.dlpack import dlpack_device
from landbridge.dtypes import dtype as dtype_facts
from landbridge.dtypes import dtype_name
from landbridge.errors import InputError, ZeroCopyError
from landbridge.memory.accesses import open_views
from landbridge.memory.borrowed import borrow_host
from landbridge.memory.holders import named_holder
from landbridge.memory.host_array import address_of, byte_bounds
from landbridge.memory.storage import Storage
from landbridge.physical_shape import separators_for
from landbridge.shape import check_shape, check_strides, dense_bytes, reach, row_major
from landbridge.tensor.host_view import HostView
from landbridge.tensor.layout import check_layout

if TYPE_CHECKING:
    import tvm_ffi

# numpy dtypes seen so far, by the name they have here: a name costs two microseconds to ask for.
_names: dict[np.dtype[Any], str] = {}


@named_holder
class Tensor:
    """``shape`` elements of ``dtype`` at ``byte_offset`` of ``storage``; many Tensors may view one Storage.

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
    """Element type by name, as in ``landbridge.dtypes``."""
    readonly: bool
    """Whether nobody may write through this Tensor."""
    axis_separators: tuple[int, ...]
    """Which physical axes make each dimension of an n-D space; empty for flat memory."""

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
        """Raises InputError when an element would lie outside ``storage``, or where its kind allows no tensor."""
        self.dtype = dtype
        self._shape: tuple[int, ...] | None = check_shape(shape, dtype)
        self._strides: tuple[int, ...] | None = (
            row_major(self._shape) if strides is None else check_strides(strides, self._shape)
        )
        self._storage: Storage | None = storage
        self._byte_offset: int | None = byte_offset
        # What is exported again and again: an array over the bytes (the borrowed one while there is no storage), and
        # the argument of a PackedFunc.
        self._array: np.ndarray[Any, Any] | None = None
        self._packed: tvm_ffi.Tensor | None = None
        self._address: int | None = None
        self.readonly = readonly or storage.readonly
        self.axis_separators = axis_separators
        check_layout(storage, dtype, self._shape, self._strides, byte_offset, axis_separators)

    @classmethod
    def from_numpy_view(cls, array: np.ndarray[Any, Any]) -> Self:
        """``array``'s memory, borrowed for as long as the Tensor lives; read-only when ``array`` is.

        Raises InputError for a dtype without a name here, ZeroCopyError for elements in another byte order or
        not at multiples of their size.
        """
        name = _names.get(array.dtype) or _learn(array.dtype)
        flags = array.flags
        self = object.__new__(cls)
        if flags.carray:
            self.readonly = False
        else:
            self.readonly = not flags.writeable
            if not flags.c_contiguous or not flags.aligned:
                _check_layout(array)
        # A view of our own: the caller may give his array another shape later.
        self._array = array.view(np.ndarray) if type(array) is not np.ndarray else array.view()
        self.dtype = name
        self.axis_separators = ()
        self._storage = self._shape = self._strides = self._byte_offset = self._address = self._packed = None
        return self

    @classmethod
    def _over_new(cls, array: np.ndarray[Any, Any], dtype: str, address: int) -> Self:
        """The Tensor of a C-contiguous ``array`` that nobody else will ever see, at ``address``; checks nothing."""
        self = object.__new__(cls)
        self._array, self._address, self.dtype, self.readonly, self.axis_separators = array, address, dtype, False, ()
        self._storage = self._shape = self._strides = self._byte_offset = self._packed = None
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, one for each dimension."""
        return self._shape if self._shape is not None else self._borrowed.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Distances between neighbours of each dimension, in elements."""
        if self._strides is None:
            array = self._borrowed
            self._strides = tuple(s // array.itemsize for s in array.strides)
        return self._strides

    @property
    def byte_offset(self) -> int:
        """Where the first element lies in the storage, in bytes."""
        if self._byte_offset is None:
            self._borrow()
        return self._byte_offset  # type: ignore[return-value]  # set by _borrow

    @property
    def storage(self) -> Storage:
        """The bytes this is a view of."""
        return self._storage if self._storage is not None else self._borrow()

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return dtype_facts(self.dtype).itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, gaps not counted."""
        return dense_bytes(self.shape, self.dtype)

    @property
    def device(self) -> Device:
        """The device whose memory this is."""
        return self.storage.device

    @property
    def scope(self) -> str:
        """The memory scope on that device."""
        return self.storage.kind.scope

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are dense and row-major."""
        if self._array is not None:
            return bool(self._array.flags.c_contiguous)
        dense = row_major(self.shape)
        return self.size == 0 or all(
            extent == 1 or stride == want for extent, stride, want in zip(self.shape, self.strides, dense, strict=True)
        )

    @property
    def byte_range(self) -> tuple[int, int]:
        """The half-open range of bytes of the storage that the elements lie in."""
        low, high = reach(self.shape, self.strides)
        itemsize, offset = self.itemsize, self.byte_offset
        return offset + low * itemsize, offset + high * itemsize

    @property
    def data_address(self) -> int:
        """The host address of the first element; raises HostViewError for memory the host cannot address."""
        if self._array is None or self._storage is not None:
            return self.storage.address + self.byte_offset
        if self._address is None:
            self._address = address_of(self._array)
        return self._address

    def host_view(self, mode: AccessMode | None = None) -> HostView:
        """The host's view of the bytes, ``with`` barriers or lasting; see HostView.

        ``mode`` is "r", "w" or "rw"; None is what the Tensor allows. Raises HostViewError.
        """
        return HostView(self, mode or ("r" if self.readonly else "rw"))

    def to_device(
        self,
        device: Device | str,
        /,
        *,
        stream: Stream | None = None,
        scope: str | None = None,
        axis_separators: Sequence[int] | None = None,
    ) -> Tensor:
        """This Tensor when it is on ``device`` already, else a copy there, which the ledger calls ``to_device``.

        ``scope``: memory of the device that it must be in, too; None is any, and "global" for a copy. In a scope of
        more than one dimension ``axis_separators`` are as in ``lb.empty``.
        """
        target = find_device(device)
        if scope is None:
            return self if target == self.device else self._copy(target, "to_device", stream)
        kind = target.memory_kind(scope)
        separators = separators_for(self.shape, axis_separators, kind)
        if target == self.device and kind.scope == self.scope and separators == self.axis_separators:
            return self
        return self._copy(target, "to_device", stream, kind.scope, separators)

    def copy(self) -> Tensor:
        """A dense copy on the same device; the ledger's cause is ``copy``."""
        return self._copy(self.device, "copy", None)

    def view(self, shape: Sequence[int]) -> Tensor:
        """The same bytes as another shape; raises ZeroCopyError when this Tensor is not dense."""
        new = check_shape(shape, self.dtype)
        if prod(new) != self.size:
            raise InputError(f"{self!r} has {self.size} elements, shape {new} has {prod(new)}; they must be equal")
        if self.axis_separators:
            raise ZeroCopyError(f"{self!r} lies in rows: another shape needs a copy; use t.copy()")
        if not self.is_contiguous:
            raise ZeroCopyError(f"{self!r} has strides {self.strides}: another shape needs a copy; use t.copy()")
        return Tensor(self.storage, self.dtype, new, None, self.byte_offset, readonly=self.readonly)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """A numpy array over the bytes, without a copy unless ``copy`` or another ``dtype`` asks for one.

        Raises HostViewError with the way out when the host cannot read them in place, and ZeroCopyError when
        ``copy=False`` cannot be kept.
        """
        array = self._array
        if array is not None and dtype is None and not copy:
            storage = self._storage
            if storage is None or storage.is_ready:
                return array.view()
        from landbridge.tensor.exports import host_array

        return host_array(self, dtype, copy)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A DLPack capsule over the bytes; see ``landbridge.dlpack.export_capsule``."""
        array = self._array
        if array is not None and stream is None and dl_device is None and not copy:
            storage = self._storage
            # numpy writes capsules for what it can describe, in a hundredth of the time it takes here.
            if array.size and (storage is None or storage.is_ready):
                try:
                    return array.__dlpack__(max_version=max_version)
                except BufferError:
                    pass  # one of ml_dtypes, or read-only
        from landbridge.tensor.exports import capsule

        return capsule(self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The DLPack device type and index of the memory."""
        if self._storage is None:
            return (1, 0)
        return dlpack_device(self.storage)

    def __tvm_ffi_object__(self) -> tvm_ffi.Tensor:
        """The Tensor as tvm-ffi passes it to a PackedFunc: the same bytes, described once.

        Raises ZeroCopyError for a read-only Tensor, which a PackedFunc cannot be told, and HostAccessError while
        an open host view conflicts.
        """
        packed, storage = self._packed, self._storage
        if packed is not None and storage is not None and storage.is_ready and not open_views:
            return packed
        from landbridge.tensor.exports import packed_argument

        return packed_argument(self)

    def let_go(self) -> None:
        """Forget what is kept for the next export, so that only what others hold keeps the bytes in use."""
        self._packed = None
        if self._storage is not None and self._shape is not None:  # else the array is the memory that was borrowed
            self._array = None

    def __repr__(self) -> str:
        where = "freed" if self._storage is not None and self._storage.region is None else str(self.device)
        scope = "" if where == "freed" or self.scope == "global" else f", scope={self.scope!r}"
        return f"Tensor({self.dtype}{list(self.shape)}, {where}{scope}{', readonly' if self.readonly else ''})"

    @property
    def _borrowed(self) -> np.ndarray[Any, Any]:
        if self._array is None:
            raise InputError("this Tensor was not initialised; make one with lb.empty or lb.asarray")
        return self._array

    def _borrow(self) -> Storage:
        """The Storage over the borrowed array, made when it is first asked for: most Tensors never need it."""
        array = self._borrowed
        low, high = byte_bounds(array)
        self._byte_offset = address_of(array) - low
        self._storage = borrow_host(low, high - low, array, readonly=self.readonly)
        return self._storage

    def _copy(
        self,
        device: Device,
        cause: str,
        stream: Stream | None,
        scope: str = "global",
        axis_separators: Sequence[int] | None = None,
    ) -> Tensor:
        from landbridge.tensor.copy import copy_tensor
        from landbridge.tensor.create import empty

        out = empty(self.shape, dtype=self.dtype, device=device, scope=scope, axis_separators=axis_separators)
        copy_tensor(out, self, cause=cause, stream=stream)
        return out


def _learn(dtype: np.dtype[Any]) -> str:
    if not dtype.isnative:
        raise ZeroCopyError(f"{dtype!r} is in another byte order; convert with array.astype({dtype.name!r}) first")
    name = dtype_name(dtype)
    _names[dtype] = name
    return name


def _check_layout(array: np.ndarray[Any, Any]) -> None:
    if not array.flags.aligned or any(stride % array.itemsize for stride in array.strides):
        raise ZeroCopyError(
            f"an array at {address_of(array):#x} with strides {array.strides} does not have its elements at multiples "
            f"of their {array.itemsize} bytes; copy it with np.ascontiguousarray(array) first"
        )
