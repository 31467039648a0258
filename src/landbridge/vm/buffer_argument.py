"""Arguments with Python's buffer protocol: bytearray, memoryview, mmap, array.array and the arrays of ctypes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from landbridge.array_type import Array
from landbridge.errors import InputError

if TYPE_CHECKING:
    from landbridge.sizes.size import Extent


#: Formats of buffers that hold plain bytes: their elements have the dtype of the tensor that they are given for.
_BYTES = ("B", "b", "c", "<B", "<b", "<c")


def array_of_buffer(subject: object, value: object, shape: Sequence[Extent], dtype: np.dtype[Any]) -> Array | None:
    """Returns the memory of ``value`` as an array for a tensor of ``shape`` and ``dtype``; None if it has no buffer.

    The array keeps the buffer exported, so that its owner cannot resize or close it as long as the array lives. It is
    read-only where the buffer is. A buffer of several axes has its own shape and dtype. One of a single axis, as these
    objects have, gives the elements in C order: plain bytes are elements of ``dtype``, others have a dtype. At most
    one extent of ``shape`` may be open; it follows from the number of elements.

    Raises InputError if the buffer has another number of bytes, was released, or has a format that numpy does not know.
    """
    if isinstance(value, np.generic):  # a number, although it has a buffer
        return None
    try:
        view = memoryview(value)  # type: ignore[arg-type]  # the next line is for what has no buffer
    except TypeError:
        return None
    except (ValueError, BufferError) as error:
        raise InputError(f"{subject}: the {type(value).__name__} gives no memory: {error}") from None
    try:
        array = np.asarray(view)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"{subject}: numpy makes no array of a {type(value).__name__}: {error}") from None
    if array.ndim != 1 or not view.c_contiguous:
        return array
    if view.format in _BYTES and dtype.itemsize:
        if view.nbytes % dtype.itemsize:
            raise _wrong_size(subject, value, view.nbytes, shape, dtype)
        # Not np.ndarray(buffer=): that does not keep the buffer exported.
        array = np.frombuffer(view, dtype) if view.nbytes else np.empty(0, dtype)
    return array if len(shape) == 1 else _shaped(subject, value, array, shape, dtype)


def _shaped(subject: object, value: object, array: Array, shape: Sequence[Extent], dtype: np.dtype[Any]) -> Array:
    """Returns the elements of ``array`` in ``shape``; raises InputError if it has another number of them.

    An array of another dtype, which does not fit either, stays as it is.
    """
    known = math.prod(extent for extent in shape if isinstance(extent, int))
    match [extent for extent in shape if not isinstance(extent, int)]:
        case []:
            fits = array.size == known
        case [_]:
            fits = known > 0 and array.size % known == 0
        case _:
            raise InputError(
                f"{subject}: a {type(value).__name__} has one axis, and several extents of shape {_text(shape)} are "
                "open; pass np.frombuffer(x, dtype).reshape(shape), which is the same memory"
            )
    if not fits:
        if array.dtype != dtype:  # which is said first
            return array
        raise _wrong_size(subject, value, array.nbytes, shape, dtype)
    extents = [extent if isinstance(extent, int) else -1 for extent in shape]
    return array.reshape(extents if array.size or -1 not in extents else [max(extent, 0) for extent in extents])


def _wrong_size(
    subject: object, value: object, nbytes: int, shape: Sequence[Extent], dtype: np.dtype[Any]
) -> InputError:
    known = math.prod(extent for extent in shape if isinstance(extent, int)) * dtype.itemsize
    is_open = any(not isinstance(extent, int) for extent in shape)
    taken = f"a multiple of {known} bytes" if is_open else f"{known} bytes"
    return InputError(
        f"{subject}: the {type(value).__name__} has {nbytes} bytes, it takes {taken}, {dtype} of shape {_text(shape)}; "
        "pass a part of it as memoryview(x)[begin:end]"
    )


def _text(shape: Sequence[Extent]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
