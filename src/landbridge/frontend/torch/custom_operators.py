"""Operators of the domain ``landbridge``, to which torch's operators are translated if ONNX has none."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import onnx
from onnxscript.values import Op, Opset

_DOMAIN, _VERSION = "landbridge", 1
_Schema = onnx.defs.OpSchema
_FLOATS = ("tensor(float16)", "tensor(bfloat16)", "tensor(float)", "tensor(double)")
_VALUES = (*_FLOATS, *(f"tensor({sign}int{bits})" for sign in ("", "u") for bits in (8, 16, 32, 64)))


@cache
def custom_operator(name: str, inputs: int, outputs: Sequence[str] = ("T",), **attributes: int | str) -> Any:
    """Returns a function that creates a node with ``inputs`` tensors of one dtype T and ``outputs``, each T or a dtype
    as ONNX spells it.

    ``attributes`` are defaults, which also give the types.
    """
    kinds = {int: _Schema.AttrType.INT, str: _Schema.AttrType.STRING}
    schema = _Schema(
        name,
        _DOMAIN,
        _VERSION,
        inputs=[_Schema.FormalParameter(f"x{number}", "T") for number in range(inputs)],
        outputs=[_Schema.FormalParameter(f"y{number}", text) for number, text in enumerate(outputs)],
        type_constraints=[("T", list(_VALUES), "numbers")],
        attributes=[_Schema.Attribute(key, kinds[type(value)], "", required=True) for key, value in attributes.items()],
    )
    return Op(Opset(_DOMAIN, _VERSION), name, schema)
