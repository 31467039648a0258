"""Values of a model that shapes are computed from: arrays of int64, or of objects that are ints and Sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from landbridge.dtypes import dtype_name
from landbridge.sizes.size import Extent, Size


def extents_array(extents: Extent | Sequence[Extent]) -> np.ndarray[Any, Any]:
    """Returns ``extents`` as an array: of int64 where all are numbers, else of objects."""
    array = np.array(extents, object)
    return as_values(array)


def as_values(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns an array of objects as int64 where none is a Size; else itself."""
    if array.dtype != object or any(isinstance(e, Size) for e in array.reshape(-1)):
        return array
    return array.astype(np.int64)


def array_dtype(array: np.ndarray[Any, Any]) -> str:
    """Returns the dtype name of a value of the model: int64 of extents."""
    return "int64" if array.dtype == object else dtype_name(array.dtype)
