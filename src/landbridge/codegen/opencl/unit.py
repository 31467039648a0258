"""The shared parts of the kernels in one OpenCL C file."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.codegen.c.types import CType, literal
from landbridge.codegen.c.unit import CUnit
from landbridge.errors import CodegenError

#: Lanes that OpenCL C has vector types for (version 3.0 specification, section 6.3.2; 3 is stored as 4).
LANES = (2, 4, 8, 16)
#: OpenCL C's own names of elements, which its vector types and conversions are called by.
ELEMENTS = {
    "i1": "uchar", "i8": "uchar", "i16": "ushort", "i32": "uint", "i64": "ulong",
    "s8": "char", "s16": "short", "s32": "int", "s64": "long", "index": "int",
    "f16": "ushort", "bf16": "ushort", "f32": "float", "f64": "double",
}  # fmt: skip


class OpenCLUnit(CUnit):
    """A unit whose vector types are those of OpenCL C, under the names that the C family uses."""

    form = "OpenCL C"
    shuffles = False

    def use(self, kind: CType) -> CType:
        """Returns ``kind``, and defines its name if it is a vector type; raises CodegenError for one that OpenCL C
        lacks.
        """
        if kind.lanes and kind.text not in self.definitions:
            self.definitions[kind.text] = f"typedef {native_name(kind)} {kind.text};"
        return kind

    def literal(self, value: float | int, element: str) -> str:
        """Returns a constant; OpenCL C has no long long."""
        text = literal(value, element)
        return text.replace("ull", "ul").replace("LL", "L") if element in ("i64", "index") else text

    def vector(self, kind: CType, values: Sequence[str]) -> str:
        """Returns a literal of OpenCL C."""
        return f"(({kind.text})({', '.join(values)}))"


def native_name(kind: CType) -> str:
    """Returns OpenCL C's name of a vector type, such as ``float4``; raises CodegenError."""
    if kind.lanes not in LANES or kind.element == "index":
        raise CodegenError(f"a vector of {kind.lanes} {kind.element}; OpenCL C has vectors of {LANES} numbers")
    return f"{ELEMENTS[kind.element]}{kind.lanes}"
