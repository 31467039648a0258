"""C spellings of types, constants and lanes.

A value is a scalar or a vector of lanes, its element one of ``i1 i8 i16 i32 i64 index f16 bf16 f32 f64``. Integers
have no sign: they are kept unsigned, where arithmetic wraps, and are cast where an operation is signed. An i1 is
a byte of 0 or 1; f16 and bf16 are kept as their bits. ``s8 .. s64`` are signed forms, for casts alone.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import inf, isnan

import numpy as np
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute

from landbridge.codegen.elements import FLOATS, NARROW, bits_in_memory, element_name, narrow_bits
from landbridge.errors import CodegenError
from landbridge.records import record

_SCALARS = {
    "i1": "uint8_t",
    **{f"i{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    "index": "lb_index",
    "f16": "uint16_t",
    "bf16": "uint16_t",
    "f32": "float",
    "f64": "double",
}


@record(frozen=True)
class CType:
    """The type of a value: its element and its lanes, 0 for a scalar."""

    element: str
    lanes: int = 0

    @property
    def text(self) -> str:
        """Returns the C type: ``float``, or the name of a vector type such as ``v16f32``."""
        return f"v{self.lanes}{self.element}" if self.lanes else _SCALARS[self.element]

    @property
    def scalar(self) -> str:
        """Returns the C type of one lane."""
        return _SCALARS[self.element]

    @property
    def signed(self) -> str:
        """Returns the signed C type of one lane of integers."""
        return self.scalar if self.element == "index" else f"int{self.bits}_t"

    @property
    def bits(self) -> int:
        """Returns width of one lane in memory."""
        return bits_in_memory(self.element)

    @property
    def is_float(self) -> bool:
        """Returns whether lanes are floating point numbers."""
        return self.element in FLOATS

    @property
    def is_narrow(self) -> bool:
        """Returns whether lanes are 16-bit floats, which are computed in f32."""
        return self.element in NARROW

    @property
    def is_native(self) -> bool:
        """Returns whether compilers with vector types support it: their sizes are powers of two."""
        return self.lanes > 0 and self.lanes & (self.lanes - 1) == 0

    def of(self, element: str) -> CType:
        """Returns the type with as many lanes of another element."""
        return CType(element, self.lanes)


def kind_of(attr: Attribute) -> CType:
    """Returns the CType of a scalar or 1-D vector type; raises CodegenError for any other."""
    if isinstance(attr, VectorType):
        shape = attr.get_shape()
        if len(shape) != 1:
            raise CodegenError(f"{attr}: only 1-D vectors have a C form; unroll the other dimensions")
        return CType(kind_of(attr.element_type).element, shape[0])
    element = element_name(attr)
    if element not in _SCALARS:
        raise CodegenError(
            f"type {attr} has no C form; legal: i1 i8 i16 i32 i64 index f16 bf16 f32 f64, "
            "1-D vectors and memrefs of them"
        )
    return CType(element)


def lane(kind: CType, name: str, index: str | int) -> str:
    """Returns one lane of ``name``, which may be assigned to."""
    return f"{'LB_LANE' if kind.is_native else 'LB_ITEM'}({name}, {index})"


def make(kind: CType, values: Sequence[str]) -> str:
    """Returns a vector of these lanes."""
    # The lanes are one macro argument: OpenCL C has no variadic macros (3.0 specification, section 6.12).
    return f"{'LB_MAKE' if kind.is_native else 'LB_MAKE_ARRAY'}({kind.text}, ({', '.join(values)}))"


def literal(value: float | int, element: str) -> str:
    """Returns a constant of a scalar element, exact for every value."""
    if element in ("f32", "f64"):
        return _float_literal(float(np.float32(value)) if element == "f32" else float(value), element)
    if element in NARROW:
        return f"0x{narrow_bits(value, element):04X}"
    if element == "index":
        if abs(value) < 1 << 31:
            return str(value) if value >= 0 else f"({value})"
        # The most negative number is no literal: its digits alone do not fit.
        return f"({value + 1}LL - 1)" if value == -(1 << 63) else f"({value}LL)" if value < 0 else f"{value}LL"
    bits = int(element[1:])
    number = int(value) & ((1 << bits) - 1)
    return f"{number}{'ull' if bits == 64 else 'u' if bits == 32 else ''}"


def _float_literal(value: float, element: str) -> str:
    if isnan(value):
        # A NaN's sign shows when it is negated or its bits are read.
        sign = "-" if struct.pack(">d", value)[0] & 0x80 else ""
        return f"({sign}({_SCALARS[element]})NAN)"
    if abs(value) == inf:
        return f"({'-' if value < 0 else ''}({_SCALARS[element]})INFINITY)"
    text = value.hex() + ("f" if element == "f32" else "")
    return f"({text})" if text[0] == "-" else text
