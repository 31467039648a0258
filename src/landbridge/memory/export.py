"""Exports: numpy arrays over the bytes of a Storage that keep it alive and are counted as its users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from landbridge.dtypes import DType, dtype, numpy_dtype
from landbridge.memory.storage import Storage


class Exporter:
    """The base of exported arrays: slices and memoryviews of them refer to it, and it refers to the Storage.

    ``str`` is ``what``, or where that is longer to build, what its call gives.
    """

    __slots__ = ("__array_interface__", "__weakref__", "storage", "what")

    __array_interface__: dict[str, Any]

    def __init__(self, storage: Storage, what: Callable[[], str] | str) -> None:
        self.storage = storage
        self.what = what
        storage.add_export(self)

    def __str__(self) -> str:
        return self.what if isinstance(self.what, str) else self.what()


def export_array(
    storage: Storage,
    element: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    byte_offset: int,
    *,
    readonly: bool,
    what: Callable[[], str] | str,
) -> np.ndarray[Any, Any]:
    """A numpy array over host-addressable bytes of ``storage``; ``strides`` in elements, None for row-major.

    Raises HostViewError when the host cannot address them. ``what`` names the export in later messages.
    """
    kind = dtype(element)
    exporter = Exporter(storage, what)
    exporter.__array_interface__ = {
        "version": 3,
        "shape": shape,
        "typestr": _typestr(kind),
        "data": (storage.address + byte_offset, readonly),
        "strides": None if strides is None else tuple([s * kind.itemsize for s in strides]),
    }
    array: np.ndarray[Any, Any] = np.asarray(exporter)
    return array if kind.dlpack_code in _PLAIN else array.view(numpy_dtype(element))


# DLPack codes of the types that numpy has itself; the others are exported through their unsigned form.
_PLAIN = {0: "i", 1: "u", 2: "f", 6: "b"}


def _typestr(kind: DType) -> str:
    return f"{'|' if kind.itemsize == 1 else '<'}{_PLAIN.get(kind.dlpack_code, 'u')}{kind.itemsize}"
