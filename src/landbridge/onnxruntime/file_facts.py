"""Reads what an ONNX file says of itself without the package onnx, whose import takes longer than reading a compiled
program from the cache.

Field numbers are those of onnx.proto. A file with anything unusual is left to onnx, which also has the errors of a
damaged one.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from landbridge.first_tier.wire_format import Content, WireFormatError, fields, message, signed, text
from landbridge.onnxruntime.element_types import element_name
from landbridge.onnxruntime.model_facts import ModelMetadata, NodeArg
from landbridge.records import record

#: Text of nodes whose outputs name classes (``landbridge.frontend.onnx.labels``).
_NAMING = (b"ZipMap", b"classlabels_strings")


@record(frozen=True)
class FileFacts:
    """The description of a model: inputs that a feed needs, weights that are listed as inputs, outputs, metadata."""

    inputs: tuple[NodeArg, ...]
    overridable: tuple[NodeArg, ...]
    outputs: tuple[NodeArg, ...]
    metadata: ModelMetadata


class _UnusualError(ValueError):
    """Raised for a form that onnx must read: a type that is no tensor's, an output without one, names of classes."""


def file_facts(model: bytes | Path) -> FileFacts | None:
    """Returns the facts of ``model``, a file or its bytes; None where onnx must read it: unusual forms, ``.ort``
    files, files that are damaged or cannot be read.
    """
    try:
        return _of_model(memoryview(model if isinstance(model, bytes) else _mapped(model)))
    except (OSError, ValueError, WireFormatError):
        return None


def _mapped(file: Path) -> mmap.mmap:
    with file.open("rb") as opened:
        return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)


def _of_model(content: memoryview) -> FileFacts:
    texts: dict[int, str] = {}
    version, graphs, custom = 0, [], {}
    for number, part in fields(content):
        if number in (2, 4, 6):
            texts[number] = text(part)
        elif number == 5:
            version = _integer(part)
        elif number == 7:
            graphs.append(message(part))
        elif number == 14:
            entry = {each: text(value) for each, value in fields(message(part))}
            custom[entry.get(1, "")] = entry.get(2, "")
    if len(graphs) != 1:
        raise _UnusualError
    named: dict[int, str] = {}
    listed: set[str] = set()
    values: dict[int, list[NodeArg]] = {11: [], 12: []}
    for number, part in fields(graphs[0]):
        if number == 1:
            node = bytes(message(part))
            if any(naming in node for naming in _NAMING):
                raise _UnusualError
        elif number in (2, 10):
            named[number] = text(part)
        elif number == 5:
            listed.add(_name_of_tensor(message(part)))
        elif number in values:
            values[number].append(_argument(message(part)))
    return FileFacts(
        tuple(value for value in values[11] if value.name not in listed),
        tuple(value for value in values[11] if value.name in listed),
        tuple(values[12]),
        ModelMetadata(
            texts.get(2, ""), named.get(2, ""), texts.get(4, ""), texts.get(6, ""), named.get(10, ""), version, custom
        ),
    )


def _name_of_tensor(content: memoryview) -> str:
    """Returns the name of a TensorProto; writers put it before the data, but need not."""
    return next((text(part) for number, part in fields(content) if number == 8), "")


def _argument(content: memoryview) -> NodeArg:
    """Returns the input or output of a ValueInfoProto, whose type must be a tensor's."""
    parts = dict(fields(content))
    kind = dict(fields(message(parts[2]))) if 2 in parts else {}
    if 1 not in kind or kind.keys() & {4, 5, 7, 8, 9}:
        raise _UnusualError
    tensor = dict(fields(message(kind[1])))
    shape = [_extent(message(dim)) for number, dim in fields(message(tensor.get(2, memoryview(b"")))) if number == 1]
    name = text(parts[1]) if 1 in parts else ""
    return NodeArg(name, f"tensor({element_name(_integer(tensor.get(1, 0)))})", shape)


def _extent(dim: memoryview) -> int | str | None:
    """Returns the extent of a Dimension as ``landbridge.onnxruntime.model_facts`` does."""
    found: int | str | None = None
    for number, part in fields(dim):
        if number == 1:
            extent = _integer(part)
            found = extent if extent >= 0 else None
        elif number == 2:
            found = text(part) or None
    return found


def _integer(content: Content) -> int:
    if not isinstance(content, int):
        raise _UnusualError
    return signed(content)
