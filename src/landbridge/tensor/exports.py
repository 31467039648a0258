"""Exports of a Tensor's memory: numpy arrays over it, or copies in another dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from landbridge.array_type import Array
from landbridge.dtypes import stored_dtype
from landbridge.errors import HostViewError, ZeroCopyError
from landbridge.memory import ledger
from landbridge.memory.export import exported_bytes
from landbridge.tensor.typed_view import TypedView


def check_host_reads(view: TypedView, *, waits: bool) -> None:
    """Raises HostViewError unless the bytes are coherent memory that the host reads; ``waits`` for pending writers."""
    storage = view.storage
    storage.live_region  # noqa: B018  raises when freed
    storage.check_device()
    storage.check_file()
    kind = storage.kind
    if not (kind.host_readable and kind.coherent):
        raise HostViewError(
            f"{view!r} is not host-readable coherent memory; use `with t.host_view('r') as a`, or copy it with "
            "t.to_device('cpu')"
        )
    if waits and not storage.is_ready:
        storage.wait(*view.byte_range, writes=False)


def array_over(view: TypedView, *, readonly: bool, subject: Callable[[], str] | str) -> Array:
    """Returns a new array over the elements, which keeps the bytes in use; the error of a ``free()`` calls it
    ``subject``.
    """
    dtype = stored_dtype(view.dtype)
    strides = tuple([step * dtype.itemsize for step in view.strides])
    buffer = exported_bytes(view.storage, readonly=readonly, subject=subject)
    return np.ndarray(view.shape, dtype, buffer, view.byte_offset, strides)


def in_dtype(view: TypedView, array: Array, dtype: Any, copy: bool | None) -> Array:
    """Returns ``array``, which is over the bytes of ``view``, or a copy in ``dtype``, as ``__array__`` must."""
    wanted = array.dtype if dtype is None else np.dtype(dtype)
    if wanted == array.dtype and not copy:
        return array.view()
    if copy is False:
        raise ZeroCopyError(f"{view!r} as {wanted} needs a copy and copy=False allows none; ask for its own dtype")
    out = np.empty(array.shape, wanted)
    ledger.copy_array(
        out,
        array,
        cause="asarray",
        tensor=repr(view),
        source=str(view.storage.device),
        destination="host",
        casting="unsafe" if wanted != array.dtype else "no",
    )
    return out


def check_packed_argument(view: TypedView) -> None:
    """Raises ZeroCopyError or HostAccessError unless a PackedFunc may use the bytes; waits for current users."""
    if view.readonly:
        raise ZeroCopyError(
            f"{view!r} is read-only, which a PackedFunc cannot be told: it may write any argument; pass t.copy()"
        )
    storage = view.storage
    start, stop = view.byte_range
    storage.check_access(start, stop, writes=True, subject="a PackedFunc")
    storage.live_region  # noqa: B018  raises when freed
    storage.wait(start, stop, writes=True)
