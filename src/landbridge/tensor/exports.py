"""What a Tensor gives to others: numpy arrays, DLPack capsules, arguments of PackedFuncs. Nothing is copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from landbridge.dlpack import Elements, export_capsule
from landbridge.errors import HostViewError, ZeroCopyError
from landbridge.memory import ledger
from landbridge.memory.borrowed import host_device
from landbridge.memory.export import export_array

if TYPE_CHECKING:
    import tvm_ffi

    from landbridge.tensor.tensor import Tensor


def host_array(tensor: Tensor, dtype: Any, copy: bool | None) -> np.ndarray[Any, Any]:
    """``Tensor.__array__``."""
    array = exported_array(tensor).view()
    wanted = array.dtype if dtype is None else np.dtype(dtype)
    if wanted == array.dtype and not copy:
        return array
    if copy is False:
        raise ZeroCopyError(f"{tensor!r} as {wanted} needs a copy and copy=False allows none; ask for its own dtype")
    out = np.empty(array.shape, wanted)
    ledger.copy_array(
        out,
        array,
        cause="asarray",
        tensor=repr(tensor),
        source=str(tensor.device),
        destination="host",
        casting="unsafe" if wanted != array.dtype else "no",
    )
    return out


def exported_array(tensor: Tensor, *, waits: bool = True) -> np.ndarray[Any, Any]:
    """An array over host-readable coherent memory, kept by ``tensor`` for the next time where it is the host's own.

    ``waits``: for the writers of the bytes. Give others a view of it. Raises HostViewError for other memory.
    """
    array, storage = tensor._array, tensor._storage
    if array is not None and (storage is None or storage.is_ready or (not waits and storage.region is not None)):
        return array
    storage = tensor.storage
    storage.live_region  # noqa: B018  raises when freed
    storage.check_device()
    storage.check_file()
    kind = storage.kind
    if not (kind.host_readable and kind.coherent):
        raise HostViewError(
            f"{tensor!r} is not host-readable coherent memory; use `with t.host_view('r') as a`, or copy it with "
            "t.to_device('cpu')"
        )
    if waits and not storage.is_ready:
        storage.wait(*tensor.byte_range, writes=False)
    if array is not None:
        return array
    shape, element = tensor.shape, tensor.dtype  # not the tensor: the export would keep it alive
    array = export_array(
        storage,
        element,
        shape,
        tensor.strides,
        tensor.byte_offset,
        readonly=tensor.readonly or not kind.host_writable,
        what=lambda: f"numpy array or DLPack capsule over {element}{list(shape)}",
    )
    if storage.device == host_device():
        tensor._array = array
        storage.add_cache(tensor)
    return array


def capsule(tensor: Tensor, *, copy: bool | None, **request: Any) -> object:
    """``Tensor.__dlpack__`` the first time, and for all that numpy does not export."""
    source = tensor.copy() if copy else tensor
    elements = Elements(source.storage, source.dtype, source.shape, source.strides, source.byte_offset)
    made = export_capsule(elements, readonly=source.readonly, is_copy=bool(copy), **request)
    if tensor._array is None and tensor.size and tensor.storage.device == host_device():
        exported_array(tensor)  # the next one is numpy's
    return made


def packed_argument(tensor: Tensor) -> tvm_ffi.Tensor:
    """``Tensor.__tvm_ffi_object__`` the first time, and when the bytes are in use."""
    if tensor.readonly:
        raise ZeroCopyError(
            f"{tensor!r} is read-only, which a PackedFunc cannot be told: it may write any argument; pass t.copy()"
        )
    storage = tensor.storage
    start, stop = tensor.byte_range
    storage.check_access(start, stop, writes=True, what="a PackedFunc")
    storage.live_region  # noqa: B018  raises when freed
    storage.wait(start, stop, writes=True)
    if tensor._packed is None:
        import tvm_ffi

        tensor._packed = tvm_ffi.from_dlpack(tensor)
        storage.add_cache(tensor)
    return tensor._packed
