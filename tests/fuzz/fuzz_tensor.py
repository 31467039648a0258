"""Shapes and strides: views, copies and host views of Tensors agree with numpy, or a LandbridgeError says why not."""

from __future__ import annotations

import math

import numpy as np
from draw import Draw
from numpy.lib.stride_tricks import as_strided

import landbridge as lb
from landbridge.dtypes import numpy_dtype
from landbridge.errors import InputError, LandbridgeError, OutOfMemoryError, ZeroCopyError

INSTRUMENT = ("landbridge",)
SEEDS = [bytes([n, n * 7 % 256, n * 31 % 256] * 10) for n in range(16)] + [bytes(4), b"\1" + b"\3" * 20]

_DTYPES = ("float32", "bool", "int8", "uint16", "int64", "float64", "bfloat16", "float8_e5m2")
_BYTES = 2048


def check(data: bytes) -> None:
    draw = Draw(data)
    match draw.below(3):
        case 0:
            _check_array(draw, _sliced(draw))
        case 1:
            _check_array(draw, _strided(draw))
        case _:
            _check_new(draw)


def _memory(dtype: str) -> np.ndarray:
    count = _BYTES // numpy_dtype(dtype).itemsize
    return (np.arange(count) % 2 if dtype == "bool" else np.arange(count) % 13).astype(numpy_dtype(dtype))


def _sliced(draw: Draw) -> np.ndarray:
    """What a program makes of an array: slices, transposes, broadcasts, new axes, reinterpretations."""
    array = _memory(draw.choice(_DTYPES)).reshape(draw.choice([(-1,), (2, 4, 2, -1), (8, -1), (2, 2, 2, 2, -1)]))
    for _ in range(draw.below(5)):
        match draw.below(7):
            case 0:
                array = array.T
            case 1 if array.ndim:
                step = draw.choice([1, 2, 3, -1, -2])
                array = np.moveaxis(array, draw.below(array.ndim), 0)[draw.below(4) :: step]
            case 2:
                array = array[np.newaxis]
            case 3 if array.ndim < 6:
                array = np.broadcast_to(array, (draw.below(3), *array.shape))
            case 4 if array.ndim:
                array = array[draw.below(array.shape[0])] if array.shape[0] else array
            case 5:
                array = array.copy(order="F")
            case _:
                array = np.frombuffer(array.tobytes() + b"\0" * 9, np.uint8)[1:9].view(np.float32)
    array = np.asarray(array).view()
    array.flags.writeable &= draw.flag()
    return array


def _strided(draw: Draw) -> np.ndarray:
    """Any strides, in bytes, that stay in the memory."""
    array = _memory(draw.choice(_DTYPES))
    shape = tuple(draw.below(6) for _ in range(draw.below(5)))
    strides = tuple(draw.below(64) - 24 for _ in shape)
    if draw.flag():
        strides = tuple(stride * array.itemsize for stride in strides)
    spans = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    low, high = sum(s for s in spans if s < 0), sum(s for s in spans if s > 0) + array.itemsize
    at = draw.below(64) - low
    if 0 in shape or high - low + at > array.nbytes:
        return array[: draw.below(8)]
    return as_strided(array.view(np.uint8)[at:].view(np.uint8), (*shape, array.itemsize), (*strides, 1))[..., :].view(
        array.dtype
    )[..., 0] if at % array.itemsize == 0 else array[::-1]  # fmt: skip


def _check_array(draw: Draw, array: np.ndarray) -> None:
    try:
        tensor = lb.asarray(array, copy=False)
    except LandbridgeError:
        assert not array.flags.aligned or any(s % array.itemsize for s in array.strides)
        return
    wanted = array.tobytes()
    assert (tensor.shape, tensor.size, tensor.nbytes) == (array.shape, array.size, array.nbytes)
    assert tensor.is_contiguous == array.flags.c_contiguous
    assert tensor.readonly == (not array.flags.writeable)
    seen = np.asarray(tensor)
    assert (seen.shape, seen.dtype) == (array.shape, array.dtype) and seen.tobytes() == wanted
    assert not array.size or np.shares_memory(seen, array)
    copied = tensor.copy()
    assert copied.is_contiguous and not copied.readonly and np.asarray(copied).tobytes() == wanted
    assert copied.strides == tuple(s // array.itemsize for s in np.empty(array.shape, array.dtype).strides) or not (
        array.size
    )
    with tensor.host_view("r") as view:
        assert view.tobytes() == wanted and not view.flags.writeable
    assert np.asarray(lb.from_dlpack(tensor)).tobytes() == wanted
    _check_reshaped(draw, tensor, array)
    _check_written(draw, tensor, array)


def _check_reshaped(draw: Draw, tensor: lb.Tensor, array: np.ndarray) -> None:
    shape = tuple(draw.choice([array.size, 1, 2, 4, 0, -1, 1 << 62]) for _ in range(draw.below(4)))
    try:
        again = tensor.view(shape)
    except ZeroCopyError:
        assert not array.flags.c_contiguous
    except InputError:
        assert min(shape, default=0) < 0 or max(shape, default=0) > 1 << 60 or int(np.prod(shape)) != array.size
    else:
        assert again.shape == shape and np.asarray(again).tobytes() == array.tobytes()


def _check_written(draw: Draw, tensor: lb.Tensor, array: np.ndarray) -> None:
    mode = draw.choice(["rw", "w"])
    try:
        with tensor.host_view(mode) as view:  # type: ignore[arg-type]
            view[...] = 1
    except LandbridgeError:
        assert tensor.readonly or mode == "w"
        return
    assert not tensor.readonly
    assert np.array_equal(array, np.ones(array.shape, array.dtype))


def _check_new(draw: Draw) -> None:
    dtype = draw.choice(_DTYPES)
    shape = tuple(draw.int64() for _ in range(draw.below(6)))
    alignment = draw.choice([None, draw.int64(), 1 << draw.below(16)])
    nbytes = math.prod(shape) * numpy_dtype(dtype).itemsize
    try:
        tensor = lb.empty(shape, dtype=dtype, alignment=alignment)
    except InputError:
        legal = alignment is None or (alignment > 0 and alignment & (alignment - 1) == 0)
        too_large = math.prod(max(extent, 1) for extent in shape) * numpy_dtype(dtype).itemsize > 1 << 62
        assert not legal or min(shape, default=0) < 0 or too_large or alignment > 1 << 60
        return
    except OutOfMemoryError:
        assert nbytes > 1 << 28 or (alignment or 0) > 1 << 20
        return
    assert tensor.nbytes == nbytes and tensor.shape == shape
    assert tensor.data_address % (alignment or 1) == 0
    if nbytes <= 1 << 20:
        np.asarray(tensor)[...] = 1
        assert np.asarray(tensor.copy()).tobytes() == np.ones(shape, numpy_dtype(dtype)).tobytes()


if __name__ == "__main__":
    from harness import restart_under_atheris

    restart_under_atheris(__file__)
