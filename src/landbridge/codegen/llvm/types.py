"""LLVM spellings of types and constants, and the addressing of memrefs."""

from __future__ import annotations

import struct

import numpy as np
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Attribute

from landbridge.codegen.elements import bits_in_memory, element_name, narrow_bits
from landbridge.codegen.layout import is_row_table, span, strides_and_offset
from landbridge.errors import CodegenError

#: LLVM's names of floats.
SPELLINGS = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}
#: The suffix under which LLVM intrinsics are overloaded for one.
_SUFFIX = {spelling: element for element, spelling in SPELLINGS.items()}


def scalar_type(attr: Attribute) -> str:
    """Returns ``i64`` for index, ``iN`` for integers of any signedness, ``float`` and so on."""
    element = element_name(attr)
    if not element:
        raise CodegenError(
            f"type {attr} has no LLVM form; legal: integers, index, f16, bf16, f32, f64, 1-D vectors, memrefs"
        )
    return "i64" if element == "index" else SPELLINGS.get(element, element)


def type_text(attr: Attribute) -> str:
    """Returns the LLVM spelling of a scalar, 1-D vector or memref (``ptr``) type; raises CodegenError for any other."""
    if isinstance(attr, VectorType):
        shape = attr.get_shape()
        if len(shape) != 1:
            raise CodegenError(f"{attr}: only 1-D vectors have an LLVM form; unroll the other dimensions")
        return f"<{shape[0]} x {scalar_type(attr.element_type)}>"
    if isinstance(attr, MemRefType):
        return "ptr"
    return scalar_type(attr)


def with_element(text: str, element: str) -> str:
    """Returns ``text`` (scalar or vector spelling) with another element type."""
    return f"{text[: text.index('x') + 2]}{element}>" if text[0] == "<" else element


def element_of(text: str) -> str:
    """Returns the element type of a vector spelling, or the scalar itself."""
    return text[text.index("x") + 2 : -1] if text[0] == "<" else text


def lanes_of(text: str) -> int:
    """Returns the number of lanes of a vector spelling; 0 for a scalar."""
    return int(text[1 : text.index(" ")]) if text[0] == "<" else 0


def suffix(text: str) -> str:
    """Returns the intrinsic overload suffix of a spelling: ``v16f32`` for ``<16 x float>``."""
    element = element_of(text)
    lanes = lanes_of(text)
    name = _SUFFIX.get(element, element)
    return f"v{lanes}{name}" if lanes else name


def is_float(text: str) -> bool:
    """Returns whether a spelling is a floating point scalar or vector."""
    return element_of(text) in _SUFFIX


def float_text(value: float, element: str) -> str:
    """Returns a floating point literal of the scalar type ``element``, exact for every value, NaN and infinities
    too.
    """
    if element == "half":
        return f"0xH{narrow_bits(value, 'f16'):04X}"
    if element == "bfloat":
        return str(narrow_bits(value, "bf16"))  # as its bits, in the form in which print_ir writes the type
    if element == "float":
        value = float(np.float32(value))
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def literal(value: float | int, element: str) -> str:
    """Returns a literal of a scalar integer or floating point type."""
    return float_text(float(value), element) if element in _SUFFIX else int_text(int(value), element)


def int_text(value: int, element: str) -> str:
    """Returns an integer literal, wrapped to the signed range of its type."""
    bits = int(element[1:])
    value &= (1 << bits) - 1
    if bits == 1:
        return "true" if value else "false"
    return str(value - (1 << bits) if value >> (bits - 1) else value)


def splat(value: float | int, text: str) -> str:
    """Returns ``value`` in every lane of ``text``, or the scalar literal."""
    element = element_of(text)
    one = literal(value, element)
    return f"splat ({element} {one})" if text[0] == "<" else one


def extent_bytes(memref: MemRefType[Attribute]) -> int:
    """Returns the bytes from the first element of the operand to the end of the last that it can address."""
    return span(memref) * bits_in_memory(element_name(memref.element_type)) // 8


class MemRefView:
    """The addressing of a memref type; ``element`` is its type in memory, where an i1 is a byte of 0 or 1.

    The strides and the offset of one in rows are those within a row.
    """

    def __init__(self, kind: MemRefType[Attribute]) -> None:
        self.in_rows = is_row_table(kind)
        self.strides, self.offset = ((1,), 0) if self.in_rows else strides_and_offset(kind)
        scalar = scalar_type(kind.element_type)
        self.is_bool = scalar == "i1"
        self.element = "i8" if self.is_bool else scalar
        self.align = bits_in_memory(element_name(kind.element_type)) // 8


def view_of(kind: Attribute) -> MemRefView:
    """Returns the addressing of a memref of type ``kind``; raises CodegenError for another type."""
    if not isinstance(kind, MemRefType):
        raise CodegenError(f"{kind} is not a memref")
    return MemRefView(kind)
