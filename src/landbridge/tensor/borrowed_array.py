"""The dtype name and strides of a numpy array whose memory a Tensor borrows."""

from __future__ import annotations

from typing import Any

import numpy as np

from landbridge.dtypes import dtype_name
from landbridge.errors import ZeroCopyError
from landbridge.memory.host_array import address_of
from landbridge.shapes.strides import reach

#: The names here of numpy dtypes seen so far: reading a name takes two microseconds.
known_names: dict[np.dtype[Any], str] = {}


def name_of(dtype: np.dtype[Any]) -> str:
    """Returns our name of ``dtype``; raises InputError where there is none, ZeroCopyError for another byte order."""
    if not dtype.isnative:
        raise ZeroCopyError(f"{dtype!r} is in another byte order; convert with array.astype({dtype.name!r}) first")
    name = dtype_name(dtype)
    known_names[dtype] = name
    return name


def is_aligned(array: np.ndarray[Any, Any]) -> bool:
    """Returns whether all elements of ``array`` are at multiples of their size."""
    return bool(array.flags.aligned) and not any(stride % array.itemsize for stride in array.strides)


def strides_of(array: np.ndarray[Any, Any]) -> tuple[tuple[int, ...], int]:
    """Returns the strides of ``array`` in elements, and how many bytes of elements lie before the first one.

    Raises ZeroCopyError for elements that are not at multiples of their size.
    """
    itemsize = array.itemsize
    if not is_aligned(array):
        raise ZeroCopyError(
            f"an array at {address_of(array):#x} with strides {array.strides} does not have its elements at "
            f"multiples of their {itemsize} bytes; copy it with array.copy() first"
        )
    low, _ = reach(array.shape, array.strides)
    return tuple(stride // itemsize for stride in array.strides), -low
