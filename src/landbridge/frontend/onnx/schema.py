"""Checks nodes against ONNX's schema of their operator: attributes, number of operands, and dtypes.

onnx's checker tests attributes too, but not in models with external parts, and it tests no dtypes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from xdsl.ir import SSAValue

from landbridge.errors import NodeError
from landbridge.frontend.onnx.attributes import numpy_name
from landbridge.ir.types import dtype_of
from landbridge.ops.extent_arrays import array_dtype
from landbridge.records import record

#: Dtypes by their names in ONNX's schemas, which spell float, float8e4m3fn and others differently.
_DTYPES = {kind.name.lower(): name for kind in ir.DataType if (name := numpy_name(kind)) not in ("", "object")}

#: The Python types of attributes, and of elements of lists.
_ONE: dict[str, type] = {"INT": int, "FLOAT": float, "STRING": str, "TENSOR": np.ndarray}
_MANY: dict[str, type] = {"INTS": int, "FLOATS": float, "STRINGS": str}


@record(frozen=True)
class _Operand:
    name: str
    variable: str
    allowed: frozenset[str]
    optional: bool
    variadic: bool
    homogeneous: bool


@record(frozen=True)
class _Schema:
    since: int
    least: int
    most: int
    operands: tuple[_Operand, ...]
    attributes: dict[str, tuple[str, bool]]


@cache
def _schema(domain: str, op_type: str, opset: int) -> _Schema | None:
    try:
        schema: Any = onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return None
    allowed = {t.type_param_str: list(t.allowed_type_strs) for t in schema.type_constraints}
    option = onnx.defs.OpSchema.FormalParameterOption
    operands = tuple(
        _Operand(
            p.name,
            p.type_str,
            frozenset(_dtype(t) for t in allowed.get(p.type_str, [p.type_str])),
            p.option == option.Optional,
            p.option == option.Variadic,
            p.is_homogeneous,
        )
        for p in schema.inputs
    )
    attributes = {name: (a.type.name, bool(a.required)) for name, a in schema.attributes.items()}
    return _Schema(schema.since_version, schema.min_input, schema.max_input, operands, attributes)


def _dtype(text: str) -> str:
    """Returns the dtype name of ``tensor(float)``; other types keep their text."""
    inner = text.removeprefix("tensor(").removesuffix(")")
    return _DTYPES.get(inner, inner)


def check_schema(
    domain: str, op_type: str, opset: int, node: str, attributes: Mapping[str, Any], inputs: Sequence[Any]
) -> None:
    """Raises NodeError if a node does not match ONNX's definition of its operator; undefined operators pass.

    ``inputs`` are arrays, values of the graph or None; unknown values pass.
    """
    schema = _schema(domain, op_type, opset)
    if schema is None:
        return
    subject = f"{op_type} node {node!r}"
    for name, (kind, required) in schema.attributes.items():
        if name in attributes:
            _check_attribute(subject, name, kind, attributes[name])
        elif required:
            raise NodeError(f"{subject} lacks attribute {name!r}, which {op_type} requires")
    if not schema.least <= len(inputs) <= schema.most:
        raise NodeError(f"{subject} has {len(inputs)} operands; {op_type} takes {schema.least} to {schema.most}")
    bound: dict[str, tuple[str, str]] = {}
    for number, x in enumerate(inputs):
        formal = schema.operands[min(number, len(schema.operands) - 1)]
        if x is None and not formal.optional:
            raise NodeError(f"{subject} lacks operand {formal.name!r}")
        if isinstance(x, np.ndarray) and x.dtype == object:
            continue  # extents match integers of any width
        if isinstance(x, np.ndarray | SSAValue):
            dtype = array_dtype(x) if isinstance(x, np.ndarray) else dtype_of(x.type)
            _check_dtype(subject, formal, dtype, bound)


def _check_attribute(subject: str, name: str, kind: str, value: Any) -> None:
    if name in ("to", "dtype", "output_dtype") and isinstance(value, str):
        return  # attribute_values returns it as the name of a dtype
    if kind in _ONE:
        right = isinstance(value, _ONE[kind])
    elif kind in _MANY:
        right = isinstance(value, list | tuple) and all(isinstance(v, _MANY[kind]) for v in value)
    else:
        return
    if not right:
        raise NodeError(f"{subject}: attribute {name!r} is {value!r}; it must be of type {kind}")


def _check_dtype(subject: str, formal: _Operand, dtype: str, bound: dict[str, tuple[str, str]]) -> None:
    if dtype not in formal.allowed:
        legal = ", ".join(sorted(formal.allowed))
        raise NodeError(f"{subject}: operand {formal.name!r} is {dtype}; legal at this opset: {legal}")
    if formal.variadic and not formal.homogeneous:
        return
    other, owner = bound.setdefault(formal.variable, (dtype, formal.name))
    if other != dtype:
        raise NodeError(
            f"{subject}: operand {formal.name!r} is {dtype} and {owner!r} is {other}; they must be equal, use Cast"
        )
