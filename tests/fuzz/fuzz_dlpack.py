"""DLPack capsules of any content: a Tensor over the bytes they describe, or a LandbridgeError; given back once.

``shape`` and ``strides`` point to as many words as they must, or to none: what lies behind a pointer nobody can check.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes  # noqa: F401  before its first use, so that no input is slow
import numpy as np
from draw import EDGES, Draw

import landbridge as lb
from landbridge.dlpack.structs import DLManagedTensor, DLManagedTensorVersioned
from landbridge.dtypes import numpy_dtype
from landbridge.errors import LandbridgeError, ZeroCopyError

INSTRUMENT = ("landbridge",)
SEEDS = [bytes([n] * 24) for n in (0, 1, 2, 5, 130, 201)] + [
    b"\1\1\0\0\0\2\3\4\5\0\0\0\1\7",
    b"\1\1\0\0\0\3\2\3\4\1\1\2\3\0\0\1\7",
    b"\0\1\0\0\0\1\5\0\0\0\0",
    b"\1\2\0\0\0\2\3\4\5\0\0\0\1\7",
]

_BYTES = 4096
_memory = np.random.default_rng(0).integers(0, 2, _BYTES + 64, np.uint8)
_first = _memory.ctypes.data
_base = -(-_first // 64) * 64
_TYPES = [(2, 32), (0, 64), (1, 8), (6, 8), (4, 16), (10, 8), (2, 16), (0, 32), (2, 64), (5, 64), (2, 17), (99, 8)]
_given_back: list[int] = []
_deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_given_back.append)
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_NAMES = (b"dltensor", b"dltensor_versioned", b"used_dltensor", b"other")


class _Producer:
    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, **request: Any) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _described(draw: Draw) -> tuple[Any, list[Any], bool]:
    """A managed tensor, what it points to, and whether it has a deleter."""
    versioned = draw.byte() < 192
    managed: Any = DLManagedTensorVersioned() if versioned else DLManagedTensor()
    if versioned:
        managed.major, managed.minor = (1, 1) if draw.byte() < 224 else (draw.byte(), draw.byte())
        managed.flags = draw.below(4) if draw.byte() < 224 else draw.int64() & 0xFFFFFFFFFFFFFFFF
    if has_deleter := draw.byte() < 224:
        managed.deleter = ctypes.cast(_deleter, ctypes.c_void_p).value
    ndim = draw.byte()
    count = ndim % 8 if ndim < 240 else 70
    extents = (ctypes.c_int64 * max(count, 1))(*(_word(draw.int64()) for _ in range(count)))
    steps = (ctypes.c_int64 * max(count, 1))(*(_word(draw.int64()) for _ in range(count)))
    tensor = managed.dl_tensor
    tensor.shape = ctypes.cast(extents, ctypes.POINTER(ctypes.c_int64)) if draw.byte() < 240 else None
    tensor.strides = ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64)) if draw.flag() else None
    tensor.ndim = count if ndim < 248 else draw.choice([-1, -(1 << 31), (1 << 31) - 1, 65, 1 << 20])
    tensor.code, tensor.bits = draw.choice(_TYPES)
    tensor.lanes = 1 if draw.byte() < 224 else draw.byte()
    tensor.data = _base + 8 * draw.byte() if draw.byte() < 224 else draw.choice(EDGES)
    tensor.byte_offset = draw.below(64) if draw.byte() < 224 else draw.int64() & 0xFFFFFFFFFFFFFFFF
    tensor.device_type, tensor.device_id = (1, 0) if draw.byte() < 224 else (draw.below(40) - 4, draw.below(8) - 4)
    return managed, [extents, steps], has_deleter


def check(data: bytes) -> None:
    draw = Draw(data)
    managed, retained, has_deleter = _described(draw)
    name = _NAMES[isinstance(managed, DLManagedTensorVersioned) if draw.byte() < 240 else draw.below(4)]
    if isinstance(managed, DLManagedTensorVersioned) != (name == b"dltensor_versioned"):
        name = b"other"  # a capsule that lies about its struct is beyond any check
    consumed = name in _NAMES[:2]
    _given_back.clear()
    capsule = _new(ctypes.addressof(managed), name, None)
    copy = draw.choice([None, False])
    try:
        tensor = lb.from_dlpack(_Producer(capsule), copy=copy)
    except LandbridgeError as error:
        del error
    else:
        assert not _given_back
        _check_tensor(tensor, managed)
        del tensor
    assert len(_given_back) == (consumed and has_deleter), "the deleter runs once"
    assert len(retained) == 2


def _word(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _check_tensor(tensor: lb.Tensor, managed: Any) -> None:
    described = managed.dl_tensor
    assert tensor.shape == tuple(described.shape[i] for i in range(described.ndim))
    assert repr(tensor) and tensor.nbytes >= 0 and tensor.size >= 0
    if described.device_type != 1:
        return
    if tensor.size > _BYTES:  # a stride of 0 repeats its bytes as often as it likes
        assert np.asarray(tensor).shape == tensor.shape
        return
    start, stop = tensor.byte_range
    first = tensor.data_address - tensor.byte_offset + start
    if tensor.size and not _base <= first <= first + stop - start <= _base + _BYTES:
        return
    dtype = numpy_dtype(tensor.dtype)
    whole = _memory[_base - _first : _base - _first + _BYTES]
    at = tensor.data_address - _base if tensor.size else 0
    strides = tuple(step * dtype.itemsize for step in tensor.strides)
    wanted = np.ndarray(tensor.shape, dtype, whole, at, strides) if tensor.size else np.empty(tensor.shape, dtype)
    try:
        array = np.asarray(tensor)
    except ZeroCopyError:
        return
    assert array.shape == wanted.shape and array.tobytes() == wanted.tobytes()
    assert np.asarray(tensor.copy()).tobytes() == wanted.tobytes()


if __name__ == "__main__":
    from harness import restart_under_atheris

    restart_under_atheris(__file__)
