"""Integers smaller than a byte: those in the file are computed as bytes; models may not compute new ones."""

from __future__ import annotations

import onnx_ir as ir

from landbridge.errors import UnsupportedOperatorError

_D = ir.DataType
_SMALL = frozenset(kind for kind in _D if kind.name in ("INT2", "UINT2", "INT4", "UINT4"))
#: Operators whose result has the dtype of an operand of which it has no values, with the number of that operand.
_REQUESTED_BY = {"QuantizeLinear": 2, "CastLike": 1}


def check_makes_bytes(node: ir.Node, name: str) -> None:
    """Raises UnsupportedOperatorError if ``node``, called ``name``, would compute integers smaller than a byte."""
    number = _REQUESTED_BY.get(node.op_type)
    if node.domain or number is None or len(node.inputs) <= number:
        return
    kind = _small_kind(node.inputs[number])
    if kind is not None:
        raise UnsupportedOperatorError(
            f"{node.op_type} node {name!r} makes {kind.name}, as its operand {number} is; a model can have such "
            "integers in its file, and compute no others: quantize to INT8 or UINT8"
        )


def _small_kind(value: ir.Value | None) -> ir.DataType | None:
    """Returns the dtype of ``value`` if its elements are smaller than a byte: the declared one, or that of its
    source.
    """
    while value is not None:
        tensor = value.const_value
        kind = value.dtype if tensor is None else tensor.dtype
        if kind is not None and kind != _D.UNDEFINED:
            return kind if kind in _SMALL else None
        node = value.producer()
        if node is None or node.op_type in ("Cast", "DequantizeLinear"):
            return None
        if node.op_type == "Constant":
            dtypes = [a.value.dtype for a in node.attributes.values() if a.type == ir.AttributeType.TENSOR]
            return dtypes[0] if dtypes and dtypes[0] in _SMALL else None
        value = node.inputs[0] if node.inputs else None
    return None
