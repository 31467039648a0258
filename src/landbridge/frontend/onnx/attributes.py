"""Attributes and element types of ONNX as Python values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from landbridge.errors import CompileError, ImportModelError


def dtype_of_onnx(code: int | ir.DataType) -> str:
    """The dtype name of an ONNX element type; CompileError for one without (strings, complex, ...)."""
    try:
        kind = ir.DataType(int(code))
    except ValueError:
        raise CompileError(f"{code} is no ONNX element type; onnx.TensorProto.DataType lists them") from None
    try:
        name = kind.numpy().name
    except (TypeError, KeyError, ValueError):
        name = ""
    if not name or name.startswith(("complex", "object", "str")):
        raise CompileError(f"ONNX element type {kind.name} cannot be compiled; numbers and booleans can")
    return name


def tensor_array(tensor: ir.TensorProtocol) -> np.ndarray[Any, Any]:
    """The values of a tensor of the file; raises ImportModelError where its data is not what its shape says."""
    try:
        return np.asarray(tensor.numpy())
    except (ValueError, TypeError, OSError) as error:
        raise ImportModelError(f"the data of tensor {tensor.name!r} cannot be read: {error}") from error


def _text(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise ImportModelError(f"attribute {name!r} is no text in UTF-8: {error}") from error


def attribute_values(node: ir.Node) -> dict[str, Any]:
    """Python values by name: int, float, str, lists, ndarray for tensors; element types are dtype names."""
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
