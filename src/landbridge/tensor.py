"""Tensor: a typed view of a Storage; and the functions that make one.

Three verbs are never mixed: a *view* never copies and raises ZeroCopyError with the reason, a *copy* always copies,
and ``asarray`` follows the array API's ``copy=None | True | False``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Self

import numpy as np

from landbridge.device.device import Device
from landbridge.device.protocols import AccessMode
from landbridge.device.registry import device as find_device
from landbridge.device.space import DmaBuf
from landbridge.device.stream import Stream, current_device
from landbridge.dtypes import dtype as dtype_facts
from landbridge.dtypes import dtype_name, numpy_dtype
from landbridge.errors import HostViewError, InputError, ZeroCopyError
from landbridge.memory import ledger
from landbridge.memory.export import export_array
from landbridge.memory.host_array import address_of, byte_bounds
from landbridge.memory.host_view import HostView
from landbridge.memory.storage import Storage, allocate, borrow_host, import_memory
from landbridge.memory_kind import HOST_ACCESSES, HostAccess
from landbridge.shape import check_shape, dense_bytes, row_major

# numpy dtypes seen so far, by the name they have here: a name costs two microseconds to ask for.
_names: dict[np.dtype[Any], str] = {}


class Tensor:
    """``shape`` elements of ``dtype`` at ``byte_offset`` of ``storage``; many Tensors may view one Storage.

    ``strides`` count elements. A Tensor over memory of others is read-only when its owner is.
    """

    __slots__ = (
        "__weakref__",
        "_address",
        "_array",
        "_byte_offset",
        "_shape",
        "_storage",
        "_strides",
        "axis_separators",
        "dtype",
        "readonly",
    )

    #: Element type by name, as in ``landbridge.dtypes``.
    dtype: str
    #: Whether nobody may write through this Tensor.
    readonly: bool
    #: Which physical axes make each dimension of an n-D space; empty for flat memory.
    axis_separators: tuple[int, ...]

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
        """Raises InputError when an element would lie outside ``storage``."""
        self.dtype = dtype
        self._shape: tuple[int, ...] | None = check_shape(shape, dtype)
        self._strides: tuple[int, ...] | None = row_major(self._shape) if strides is None else tuple(strides)
        self._storage: Storage | None = storage
        self._byte_offset: int | None = byte_offset
        self._array: np.ndarray[Any, Any] | None = None
        self._address: int | None = None
        self.readonly = readonly or storage.readonly
        self.axis_separators = axis_separators
        if strides is None and 0 <= byte_offset <= storage.nbytes - dense_bytes(self._shape, dtype):
            return
        if len(self._strides) != len(self._shape):
            raise InputError(f"strides {self._strides} do not match shape {self._shape}; give one for each dimension")
        start, stop = self.byte_range
        if start < 0 or stop > storage.nbytes:
            raise InputError(
                f"a tensor {dtype}{list(self._shape)} with strides {self._strides} at byte {byte_offset} needs bytes "
                f"{start} to {stop} of a storage of {storage.nbytes}"
            )

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
        self._storage = self._shape = self._strides = self._byte_offset = self._address = None
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
        start = stop = self.byte_offset
        if self.size == 0:
            return start, start
        itemsize = self.itemsize
        for extent, stride in zip(self.shape, self.strides, strict=True):
            if stride > 0:
                stop += (extent - 1) * stride * itemsize
            else:
                start += (extent - 1) * stride * itemsize
        return start, stop + itemsize

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

    def to_device(self, device: Device | str, /, *, stream: Stream | None = None) -> Tensor:
        """This Tensor when it is on ``device`` already, else a copy there, which the ledger calls ``to_device``."""
        target = find_device(device)
        if target == self.device:
            return self
        return self._copy(target, "to_device", stream)

    def copy(self) -> Tensor:
        """A dense copy on the same device; the ledger's cause is ``copy``."""
        return self._copy(self.device, "copy", None)

    def view(self, shape: Sequence[int]) -> Tensor:
        """The same bytes as another shape; raises ZeroCopyError when this Tensor is not dense."""
        new = check_shape(shape, self.dtype)
        if prod(new) != self.size:
            raise InputError(f"{self!r} has {self.size} elements, shape {new} has {prod(new)}; they must be equal")
        if not self.is_contiguous:
            raise ZeroCopyError(f"{self!r} has strides {self.strides}: another shape needs a copy; use t.copy()")
        return Tensor(self.storage, self.dtype, new, None, self.byte_offset, readonly=self.readonly)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """A numpy array over the bytes, without a copy unless ``copy`` or another ``dtype`` asks for one.

        Raises HostViewError with the way out when the host cannot read them in place, and ZeroCopyError when
        ``copy=False`` cannot be kept.
        """
        array = self._host_array("numpy array")
        wanted = array.dtype if dtype is None else np.dtype(dtype)
        if wanted == array.dtype and not copy:
            return array
        if copy is False:
            raise ZeroCopyError(f"{self!r} as {wanted} needs a copy and copy=False allows none; ask for its own dtype")
        out = np.empty(array.shape, wanted)
        ledger.copy_array(
            out,
            array,
            cause="asarray",
            tensor=repr(self),
            source=str(self.device),
            destination="host",
            casting="unsafe" if wanted != array.dtype else "no",
        )
        return out

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A DLPack capsule over the bytes; see ``landbridge.dlpack.export_capsule``."""
        from landbridge.dlpack import export_capsule

        return export_capsule(self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The DLPack device type and index of the memory."""
        from landbridge.dlpack import dlpack_device

        return dlpack_device(self)

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

    def _host_array(self, what: str) -> np.ndarray[Any, Any]:
        """An array over host-readable coherent memory; raises HostViewError for any other."""
        if self._array is not None and self._storage is None:
            return self._array.view()
        storage = self.storage
        storage.live_region  # noqa: B018  raises when freed
        kind = storage.kind
        if not (kind.host_readable and kind.coherent):
            raise HostViewError(
                f"{self!r} is not host-readable coherent memory; use `with t.host_view('r') as a`, or copy it with "
                "t.to_device('cpu')"
            )
        if storage.has_queued:
            storage.wait(*self.byte_range, writes=False)
        shape, element = self.shape, self.dtype  # not self: the export would keep this Tensor alive
        return export_array(
            storage,
            element,
            shape,
            self._strides,
            self.byte_offset,
            readonly=self.readonly or not kind.host_writable,
            what=lambda: f"{what} {element}{list(shape)}",
        )

    def _copy(self, device: Device, cause: str, stream: Stream | None) -> Tensor:
        from landbridge.memory.transfer import copy_tensor

        out = empty(self.shape, dtype=self.dtype, device=device)
        copy_tensor(out, self, cause=cause, stream=stream)
        return out


def empty(
    shape: int | Sequence[int],
    *,
    dtype: Any,
    device: Device | str | None = None,
    scope: str = "global",
    alignment: int | None = None,
    host_access: HostAccess | None = None,
) -> Tensor:
    """A new dense Tensor whose elements are undefined, in ``scope`` of ``device`` (None: the current one).

    ``alignment``: bytes, a power of two, None for the scope's own. ``host_access``: what the host must be able
    to do with the bytes in place. Raises InputError for what is not legal and OutOfMemoryError.
    """
    name = dtype_facts(dtype).name if type(dtype) is str else dtype_name(dtype)
    extents = check_shape((shape,) if isinstance(shape, int) else shape, name)
    where = current_device() if device is None else find_device(device)
    kind = where.memory_kind(scope)
    if alignment is not None and (alignment < 1 or alignment & (alignment - 1)):
        raise InputError(f"alignment {alignment} is not legal; give a power of two in bytes")
    if host_access is not None:
        if host_access not in HOST_ACCESSES:
            raise InputError(f"host_access {host_access!r} is unknown; legal: {', '.join(HOST_ACCESSES)}")
        if host_access not in ("none", kind.host_access) and kind.host_access != "read_write":
            raise InputError(
                f"host_access {host_access!r} asked of scope {kind.scope!r} of {where}; legal: {kind.host_access!r}"
            )
    nbytes = dense_bytes(extents, name)
    if kind.max_bytes is not None and nbytes > kind.max_bytes:
        raise InputError(
            f"{name}{list(extents)} has {nbytes} bytes; one allocation of scope {kind.scope!r} of {where} has at most "
            f"{kind.max_bytes}"
        )
    return Tensor(allocate(where, nbytes, scope=scope, alignment=alignment or 1), name, extents)


def asarray(obj: Any, /, *, dtype: Any = None, device: Device | str | None = None, copy: bool | None = None) -> Tensor:
    """``obj`` as a Tensor: a Tensor, an array, anything with DLPack or the buffer protocol, or nested sequences.

    ``copy=None`` copies only when another ``dtype`` or ``device`` needs it, True always, False never: it raises
    ZeroCopyError with the reason instead.
    """
    tensor, fresh = _as_tensor(obj, copy)
    wanted = tensor.dtype if dtype is None else dtype_name(dtype)
    stays = device is None or find_device(device) == tensor.device
    if wanted == tensor.dtype and stays and (fresh or not copy):
        return tensor
    target = tensor.device if device is None else find_device(device)
    if copy is False:
        raise ZeroCopyError(
            f"asarray(copy=False): {tensor!r} as {wanted} on {target} needs a copy; allow it with copy=None, or ask "
            "for the dtype and device it has"
        )
    if wanted != tensor.dtype:
        cast = Tensor.from_numpy_view(np.asarray(tensor.to_device("cpu"), dtype=numpy_dtype(wanted)))
        return cast.to_device(target)
    return tensor._copy(target, "asarray", None)


def from_dlpack(x: Any, /, *, device: Device | str | None = None, copy: bool | None = None) -> Tensor:
    """The memory of ``x``, any object with ``__dlpack__``, as a Tensor; ``copy`` as in ``asarray``."""
    from landbridge.dlpack import import_object

    tensor = import_object(x, copy=copy)
    return asarray(tensor, device=device, copy=copy)


def from_dma_buf(
    fd: int,
    shape: Sequence[int],
    dtype: Any,
    *,
    device: Device | str,
    offset: int = 0,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """The memory of the Linux dma-buf ``fd`` from byte ``offset`` on, used in place by ``device``.

    ``strides`` count elements, None is dense. ``fd`` stays the caller's, to close when he likes. Raises
    ZeroCopyError when the device cannot import it.
    """
    name = dtype_name(dtype)
    where = find_device(device)
    extents = check_shape(shape, name)
    steps = row_major(extents) if strides is None else tuple(strides)
    if offset < 0 or any(step < 0 for step in steps) or len(steps) != len(extents):
        raise InputError(f"offset {offset} and strides {steps} of a dma-buf must be at least 0, one for each dimension")
    last = sum((extent - 1) * step for extent, step in zip(extents, steps, strict=True))
    nbytes = 0 if 0 in extents else (last + 1) * dtype_facts(name).itemsize
    storage = import_memory(where, DmaBuf(fd, offset, nbytes), "rw")
    return Tensor(storage, name, extents, steps)


def _as_tensor(obj: Any, copy: bool | None) -> tuple[Tensor, bool]:
    """``obj`` as a Tensor, and whether its memory is already a copy."""
    if isinstance(obj, Tensor):
        return obj, False
    if isinstance(obj, HostView):
        return obj.tensor, False
    if isinstance(obj, np.ndarray):
        return Tensor.from_numpy_view(obj), False
    if hasattr(obj, "__dlpack__"):
        from landbridge.dlpack import import_object

        return import_object(obj, copy=copy), False
    if hasattr(obj, "__array_interface__"):
        return Tensor.from_numpy_view(np.asarray(obj)), False
    try:
        return Tensor.from_numpy_view(np.asarray(memoryview(obj))), False
    except TypeError:
        pass
    if copy is False:
        raise ZeroCopyError(f"asarray(copy=False): a {type(obj).__name__} has no memory to view; allow a copy")
    return Tensor.from_numpy_view(np.array(obj)), True


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
