"""The shared parts of the kernels in one C file without a C library."""

from __future__ import annotations

from landbridge.codegen.c.types import CType, literal
from landbridge.codegen.c.unit import CUnit
from landbridge.errors import CodegenError

#: Temporaries of a kernel that take more bytes are in the arena, not on the stack.
STACK_BYTES = 256


class FreestandingUnit(CUnit):
    """A unit whose index has 32 bits, whose memory any pointer may reach, and which has no f64."""

    form = "freestanding C"
    prelude = (("landbridge.codegen.freestanding", "prelude.h"), ("landbridge.codegen.c", "common.h"))
    stack_bytes = STACK_BYTES
    #: What the ABIs of Arm and RISC-V keep the stack aligned to, at least.
    stack_alignment = 8

    def use(self, kind: CType) -> CType:
        """Returns ``kind``; raises CodegenError for f64. Vectors are printed as their lanes and need no type."""
        if kind.element == "f64":
            raise CodegenError(
                "it computes floats of 64 bits, which small processors have no instructions for; cast the model's "
                "tensors to float32, or export it for Linux ('llvm')"
            )
        return kind

    def in_memory(self, kind: CType) -> str:
        """Returns the type of an element that a pointer reaches: one that may alias others."""
        self.use(kind)
        return self.define(
            f"lb_{kind.element}_at", lambda: f"typedef {kind.scalar} lb_{kind.element}_at LB_MAY_ALIAS;"
        ).strip()

    def literal(self, value: float | int, element: str) -> str:
        """Returns a constant; raises CodegenError for an index beyond 32 bits."""
        if element == "index" and not -(1 << 31) <= value < 1 << 31:
            raise CodegenError(f"it has the index {value:,}, and addresses have 32 bits; split the model's tensor")
        return literal(value, element)
