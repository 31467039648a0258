"""Reads an ONNX file into nodes and arrays, without the packages ``onnx`` and ``protobuf``.

Field numbers are those of onnx.proto (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from struct import pack, unpack
from typing import Any

import numpy as np

from landbridge.array_type import Array
from landbridge.first_tier.not_taken import NotTakenError
from landbridge.first_tier.wire_format import Content, fields, integers, message, signed, text
from landbridge.records import record

#: Element types by TensorProto.DataType: those that numpy has.
DTYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
}

AttributeValue = int | float | str | Array | Sequence[int] | Sequence[float] | Sequence[str]

#: Graphs within one another that are read.
_DEEPEST = 32


@record(frozen=True, eq=False)
class Node:
    """A node; empty names stand for inputs and outputs that it leaves out. ``name`` is for errors and traces.

    ``op_type`` has the domain before it where that is not ONNX's own: ``"com.microsoft.Gelu"``.
    """

    op_type: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, AttributeValue | OnnxGraph]


@record(frozen=True)
class DeclaredInput:
    """An input or output as the file declares it. An extent is a number, the name of an open dimension, or empty.

    ``dtype`` is empty where the file has none, ``shape`` None.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...] | None


@record(frozen=True, eq=False)
class OnnxGraph:
    """The graph of a file: ``nodes`` in its order, ``constants`` by name (arrays that belong to this object).

    ``opset`` is that of the file, also of a graph within another.
    """

    name: str
    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    inputs: tuple[DeclaredInput, ...]
    outputs: tuple[DeclaredInput, ...]
    opset: int


def read_graph(file: bytes | memoryview) -> OnnxGraph:
    """Returns the graph of a ModelProto's bytes; its arrays are copies.

    Raises NotTakenError for what is not read here: functions, sparse tensors, external data, elements that numpy
    lacks. Raises WireFormatError for bytes that are no message.
    """
    graph: memoryview | None = None
    opset = 1
    for number, content in fields(memoryview(file)):
        if number == 7:
            graph = message(content)
        elif number == 8:
            domain, version = "", 1
            for each, part in fields(message(content)):
                if each == 1:
                    domain = text(part)
                elif each == 2:
                    version = _integer(part)
            if domain in ("", "ai.onnx"):
                opset = version
        elif number == 25:
            raise NotTakenError("a function of the model")
    if graph is None:
        raise NotTakenError("a file without a graph")
    return _graph(graph, opset, 0)


def _graph(content: memoryview, opset: int, depth: int) -> OnnxGraph:
    if depth > _DEEPEST:
        raise NotTakenError(f"more than {_DEEPEST} graphs within one another")
    name, nodes, constants = "", [], {}
    inputs, outputs = [], []
    for number, part in fields(content):
        if number == 1:
            nodes.append(_node(message(part), opset, depth))
        elif number == 2:
            name = text(part)
        elif number == 5:
            label, array = _tensor(message(part))
            constants[label] = array
        elif number == 11:
            inputs.append(_declared(message(part)))
        elif number == 12:
            outputs.append(_declared(message(part)))
        elif number == 15:
            raise NotTakenError("a sparse initializer")
    inputs = [each for each in inputs if each.name not in constants]
    return OnnxGraph(name, tuple(nodes), constants, tuple(inputs), tuple(outputs), opset)


def _node(content: memoryview, opset: int, depth: int) -> Node:
    inputs, outputs = [], []
    name = op_type = domain = ""
    attributes: dict[str, AttributeValue | OnnxGraph] = {}
    for number, part in fields(content):
        if number == 1:
            inputs.append(text(part))
        elif number == 2:
            outputs.append(text(part))
        elif number == 3:
            name = text(part)
        elif number == 4:
            op_type = text(part)
        elif number == 5:
            label, value = _attribute(message(part), opset, depth)
            attributes[label] = value
        elif number == 7 and text(part) not in ("", "ai.onnx"):
            domain = f"{text(part)}."
    op_type = domain + op_type
    return Node(op_type, name or (outputs[0] if outputs else op_type), tuple(inputs), tuple(outputs), attributes)


def _attribute(content: memoryview, opset: int, depth: int) -> tuple[str, AttributeValue | OnnxGraph]:
    name, kind = "", 0
    single: dict[int, Content] = {}
    floats: list[float] = []
    ints: list[int] = []
    texts: list[str] = []
    for number, part in fields(content):
        if number == 1:
            name = text(part)
        elif number == 20:
            kind = _integer(part)
        elif number == 7:
            floats += _floats(part)
        elif number == 8:
            ints += integers(part)
        elif number == 9:
            texts.append(text(part))
        else:
            single[number] = part
    match kind:
        case 1:
            return name, _float(single.get(2, 0))
        case 2:
            return name, signed(_integer(single.get(3, 0)))
        case 3:
            return name, text(single.get(4, memoryview(b"")))
        case 4:
            return name, _tensor(message(single.get(5, memoryview(b""))))[1]
        case 5:
            return name, _graph(message(single.get(6, memoryview(b""))), opset, depth + 1)
        case 6:
            return name, floats
        case 7:
            return name, ints
        case 8:
            return name, texts
        case _:
            raise NotTakenError(f"attribute {name!r} of kind {kind}")


def _tensor(content: memoryview) -> tuple[str, Array]:
    """Returns the name and a copy of the elements of a TensorProto."""
    name, kind = "", 0
    dims: list[int] = []
    raw: memoryview | None = None
    listed: list[Content] = []
    for number, part in fields(content):
        if number == 1:
            dims += integers(part)
        elif number == 2:
            kind = _integer(part)
        elif number == 8:
            name = text(part)
        elif number == 9:
            raw = message(part)
        elif number in (4, 5, 7, 10, 11):
            listed.append(part)
        elif number in (13, 14) and (number == 13 or part):
            raise NotTakenError("external data")
    if kind not in DTYPES:
        raise NotTakenError(f"elements of TensorProto.DataType {kind}")
    dtype = np.dtype(DTYPES[kind])
    count = prod(dims)
    if min(dims, default=0) < 0:
        raise NotTakenError(f"tensor {name!r} of shape {dims}")
    if raw is not None and len(raw) != count * dtype.itemsize:
        raise NotTakenError(f"tensor {name!r} with {len(raw)} bytes for shape {dims}")
    elements = _listed(listed, dtype) if raw is None else np.frombuffer(raw, dtype)
    if elements.size != count:
        raise NotTakenError(f"tensor {name!r} with {elements.size} elements for shape {dims}")
    return name, elements.reshape(dims).copy()


def _listed(parts: Sequence[Content], dtype: np.dtype[Any]) -> Array:
    """Returns the elements of the fields float_data, int32_data, int64_data, double_data and uint64_data."""
    if dtype.kind == "f" and dtype.itemsize > 2:
        if all(isinstance(part, memoryview) for part in parts):
            return _packed(b"".join(message(part) for part in parts), dtype)
        unsigned = np.array([part for part in parts if isinstance(part, int)], f"u{dtype.itemsize}")
        return unsigned.view(dtype)
    numbers = np.array([number for part in parts for number in integers(part)], np.int64)
    return numbers.astype(np.uint16).view(dtype) if dtype.kind == "f" else numbers.astype(dtype)


def _declared(content: memoryview) -> DeclaredInput:
    name, kind, shape = "", 0, None
    for number, part in fields(content):
        if number == 1:
            name = text(part)
        elif number == 2:
            for form, tensor_type in fields(message(part)):
                if form != 1:
                    raise NotTakenError(f"{name!r} is no tensor")
                for each, value in fields(message(tensor_type)):
                    if each == 1:
                        kind = _integer(value)
                    elif each == 2:
                        shape = tuple(_extent(message(d)) for field, d in fields(message(value)) if field == 1)
    if kind and kind not in DTYPES:
        raise NotTakenError(f"{name!r} has elements of TensorProto.DataType {kind}")
    return DeclaredInput(name, DTYPES.get(kind, ""), shape)


def _extent(content: memoryview) -> int | str:
    for number, part in fields(content):
        if number == 1:
            return signed(_integer(part))
        if number == 2:
            return text(part)
    return ""


def _integer(content: Content) -> int:
    if not isinstance(content, int):
        raise NotTakenError("bytes where a number is expected")
    return content


def _float(content: Content) -> float:
    (value,) = unpack("<f", pack("<I", _integer(content) & 0xFFFFFFFF))
    return float(value)


def _floats(content: Content) -> list[float]:
    if isinstance(content, int):
        return [_float(content)]
    return [float(each) for each in _packed(content, np.dtype("<f4"))]


def _packed(content: bytes | memoryview, dtype: np.dtype[Any]) -> Array:
    if len(content) % dtype.itemsize:
        raise NotTakenError(f"{len(content)} bytes of elements of {dtype.itemsize}")
    return np.frombuffer(content, dtype)
