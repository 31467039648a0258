"""Leaves large weights in the ONNX file until they are imported, one by one.

A parsed model contains all weights once more, and onnx's checker parses another copy. Therefore the file is split by
protobuf's wire format: the part that is parsed has one byte instead of each large array, whose location is recorded;
the part that is checked has tensors of one element instead. A file with anything unusual is left to protobuf.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir

from landbridge.frontend.onnx.read_ahead import ReadAhead
from landbridge.records import record

#: Field numbers of ModelProto, GraphProto and TensorProto in onnx.proto.
_GRAPH, _INITIALIZER = 7, 5
_DIMS, _DATA_TYPE, _NAME, _RAW_DATA, _DATA_LOCATION = 1, 2, 8, 9, 14
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
#: Arrays with fewer bytes are parsed with the rest.
_LEAST = 4096
#: Types whose elements are whole bytes, in the file as in memory.
_D = ir.DataType
_PLAIN = frozenset(
    {_D.BOOL, _D.FLOAT16, _D.BFLOAT16, _D.FLOAT, _D.DOUBLE, _D.INT8, _D.INT16, _D.INT32, _D.INT64}
    | {_D.UINT8, _D.UINT16, _D.UINT32, _D.UINT64}
)


class _UnusualError(ValueError):
    """Raised for bytes that do not look like a model that a program has written."""


class _Field(NamedTuple):
    """A field of a message: its number and wire type, its offset, and its value."""

    number: int
    kind: int
    start: int
    value: int
    end: int


@record(frozen=True)
class _Array:
    offset: int
    nbytes: int
    dtype: ir.DataType
    shape: tuple[int, ...]


class LightModel:
    """A model file without its large weights: ``content`` is a ModelProto, and ``attach`` adds the weights to its IR.

    ``checked`` is a ModelProto for which onnx's checker returns the same errors as for the file. Tensors that are read
    from the file keep this object, and with it the file.
    """

    def __init__(self, file: int, content: bytes, checked: bytes, arrays: dict[str, _Array]) -> None:
        self._file, self.content, self.checked, self._arrays = file, content, checked, arrays
        #: What was read and is still in use: several walks of one model have the weights once.
        self._in_use: weakref.WeakValueDictionary[str, np.ndarray[Any, Any]] = weakref.WeakValueDictionary()
        weakref.finalize(self, os.close, file)

    def attach(self, model: ir.Model) -> None:
        """Give the initializers of ``model``, which was parsed from ``content``, their values; reading begins now."""
        ahead = ReadAhead(self._read, {name: array.nbytes for name, array in self._arrays.items()})
        for name, array in self._arrays.items():
            value = model.graph.initializers[name]
            value.const_value = ir.LazyTensor(
                lambda name=name: ir.Tensor(self._array(name, ahead), name=name),  # type: ignore[misc]
                dtype=array.dtype,
                shape=ir.Shape(array.shape),
                name=name,
            )

    def _array(self, name: str, ahead: ReadAhead) -> np.ndarray[Any, Any]:
        """Returns the array ``name``, the same one as long as anything uses it; nobody may change its elements."""
        found = self._in_use.get(name)
        if found is None:
            found = self._in_use[name] = ahead.get(name)
        return found

    def _read(self, name: str) -> np.ndarray[Any, Any]:
        array = self._arrays[name]
        created = np.empty(array.shape, array.dtype.numpy())
        memory = created.reshape(-1).view(np.uint8).data
        done = 0
        while done < array.nbytes:
            count = os.preadv(self._file, [memory[done:]], array.offset + done)
            if not count:
                raise OSError("the file was cut while it was read")
            done += count
        return created


def light_model(path: str | Path) -> LightModel | None:
    """Returns the model in the file ``path`` without its large weights; None if it has none, or has to be parsed as a
    whole.
    """
    file = os.open(path, os.O_RDONLY)
    try:
        with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as data:
            arrays: dict[str, _Array] = {}
            content, checked = _light(data, arrays)
        if arrays:
            light = LightModel(file, content, checked, arrays)
            file = -1
            return light
    except (_UnusualError, IndexError, ValueError):
        pass
    finally:
        if file >= 0:
            os.close(file)
    return None


def _light(data: mmap.mmap, arrays: dict[str, _Array]) -> tuple[bytes, bytes]:
    """Returns the part that is parsed and the part that is checked."""
    graphs = [f for f in _fields(data, 0, len(data)) if f.number == _GRAPH]
    if len(graphs) != 1 or graphs[0].kind != _LENGTH:
        raise _UnusualError
    (graph,) = graphs
    pieces: tuple[list[bytes], list[bytes]] = ([], [])
    copied = graph.value
    for f in _fields(data, graph.value, graph.end):
        if f.number == _INITIALIZER and f.kind == _LENGTH and (tensors := _light_tensor(data, f, arrays)) is not None:
            for each, tensor in zip(pieces, tensors, strict=True):
                each += [data[copied : f.start], _message(_INITIALIZER, tensor)]
            copied = f.end
    graphs_created = [b"".join([*each, data[copied : graph.end]]) for each in pieces]
    parsed, checked = (b"".join([data[: graph.start], _message(_GRAPH, g), data[graph.end :]]) for g in graphs_created)
    return parsed, checked


def _light_tensor(data: mmap.mmap, tensor: _Field, arrays: dict[str, _Array]) -> tuple[bytes, bytes] | None:
    """Returns ``tensor`` with one byte of data, recorded in ``arrays``, and with one element; None if it stays as it
    is.
    """
    fields = list(_fields(data, tensor.value, tensor.end))
    raw = [f for f in fields if f.number == _RAW_DATA]
    if any(f.number == _DATA_LOCATION and data[f.value] for f in fields):
        raise _UnusualError  # onnx's checker looks for the file of external data
    if not raw or raw[-1].end - raw[-1].value < _LEAST:
        return None
    names = [data[f.value : f.end].decode() for f in fields if f.number == _NAME]
    types = [_varint(data, f.value)[0] for f in fields if f.number == _DATA_TYPE]
    if len(raw) != 1 or len(names) != 1 or len(types) != 1 or types[0] not in _PLAIN or names[0] in arrays:
        raise _UnusualError
    dtype, shape = ir.DataType(types[0]), tuple(_dims(data, [f for f in fields if f.number == _DIMS]))
    nbytes = raw[0].end - raw[0].value
    if prod(shape) * dtype.numpy().itemsize != nbytes:
        raise _UnusualError
    arrays[names[0]] = _Array(raw[0].value, nbytes, dtype, shape)
    rest = b"".join(data[f.start : f.end] for f in fields if f.number not in (_DIMS, _RAW_DATA))
    dims = b"".join(data[f.start : f.end] for f in fields if f.number == _DIMS)
    one = bytes([_DIMS << 3 | _VARINT, 1]) + _message(_RAW_DATA, bytes(dtype.numpy().itemsize))
    return rest + dims + _message(_RAW_DATA, b"\0"), rest + one


def _dims(data: mmap.mmap, fields: Sequence[_Field]) -> Iterator[int]:
    """Yields the extents, which are packed into one field or have a field each."""
    for f in fields:
        at = f.value
        while at < f.end:
            extent, at = _varint(data, at)
            yield extent


def _message(number: int, content: bytes) -> bytes:
    """Returns an encoded field of bytes."""
    size, length = len(content), bytearray()
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | _LENGTH, *length, size]) + content


def _fields(data: mmap.mmap, at: int, end: int) -> Iterator[_Field]:
    """Yields the fields of the message in bytes ``at`` to ``end``."""
    while at < end:
        start = at
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, (_, at) = at, _varint(data, at)
        elif kind == _LENGTH:
            size, value = _varint(data, at)
            at = value + size
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            value, at = at, at + (8 if kind == _EIGHT_BYTES else 4)
        else:
            raise _UnusualError
        if at > end:
            raise _UnusualError
        yield _Field(number, kind, start, value, at)


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    """Returns the number at offset ``at``, and the offset after it."""
    byte = data[at]
    if byte < 128:
        return byte, at + 1
    value, shift = byte & 127, 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at + 1
        shift += 7
        if shift > 63:
            raise _UnusualError
