"""Converts attributes and element types of ONNX to Python values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from landbridge.errors import CompileError, ImportModelError

#: Integers smaller than a byte are computed as bytes.
_AS_BYTES = {"int2": "int8", "uint2": "uint8", "int4": "int8", "uint4": "uint8"}


def stored_dtype(code: int | ir.DataType) -> str:
    """Returns the dtype that ``tensor_array`` gives tensors of this ONNX element type."""
    name = numpy_name(ir.DataType(int(code)))
    return _AS_BYTES.get(name) or dtype_of_onnx(code)


def numpy_name(kind: ir.DataType) -> str:
    """Returns the name of ``kind`` in numpy and ml_dtypes; empty if it has none."""
    try:
        return str(kind.numpy().name)
    except (TypeError, KeyError, ValueError):
        return ""


def dtype_of_onnx(code: int | ir.DataType) -> str:
    """Returns the dtype name of an ONNX element type; raises CompileError if there is none (strings, complex, ...)."""
    try:
        kind = ir.DataType(int(code))
    except ValueError:
        raise CompileError(f"{code} is no ONNX element type; onnx.TensorProto.DataType lists them") from None
    name = numpy_name(kind)
    if not name or name.startswith(("complex", "object", "str")):
        raise CompileError(f"ONNX element type {kind.name} cannot be compiled; numbers and booleans can")
    if name in _AS_BYTES:
        raise CompileError(
            f"ONNX element type {kind.name} can be compiled where values are in the file, as weights are; cast to "
            f"{_AS_BYTES[name].upper()} where the model computes or takes them"
        )
    return name


def tensor_array(tensor: ir.TensorProtocol) -> np.ndarray[Any, Any]:
    """Returns the values of a tensor of the file, those smaller than a byte as bytes.

    Raises ImportModelError if the data do not match the shape.
    """
    try:
        array = np.asarray(tensor.numpy())
        return array.astype(_AS_BYTES.get(array.dtype.name, array.dtype), copy=False)
    except (ValueError, TypeError, OSError) as error:
        raise ImportModelError(f"the data of tensor {tensor.name!r} cannot be read: {error}") from error


def _text(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise ImportModelError(f"attribute {name!r} is not text in UTF-8: {error}") from error


def attribute_values(node: ir.Node) -> dict[str, Any]:
    """Returns the attributes by name as Python values: int, float, str, lists, ndarray for tensors; element types are
    dtype names.
    """
    values: dict[str, Any] = {}
    for name, attribute in node.attributes.items():
        value: Any = attribute.value
        if attribute.type == ir.AttributeType.TENSOR:
            value = tensor_array(value)
        elif isinstance(value, bytes):
            value = _text(name, value)
        elif isinstance(value, list | tuple):
            value = [_text(name, v) if isinstance(v, bytes) else v for v in value]
        if name in ("to", "dtype", "output_dtype") and isinstance(value, int) and value:
            value = dtype_of_onnx(value)
        values[name] = value
    return values
