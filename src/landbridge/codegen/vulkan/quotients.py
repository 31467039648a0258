"""Quotients of f32, in which drivers may be off by 2.5 units of the last place (Vulkan 1.3 specification, appendix A,
"Precision and Operation of SPIR-V Instructions"): integers that models round quotients to would be others.
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.codegen.vulkan import glsl
from landbridge.codegen.vulkan.emitter import SpirvEmitter
from landbridge.executable.spirv import Op

#: The largest relative correction of a quotient; a larger one means that an intermediate result has overflowed.
_SMALL = 2.0**-20


def quotient(e: SpirvEmitter, x: Sequence[int], source: str, result: str) -> int:
    """Returns ``x[0] / x[1]``, for f32 correctly rounded wherever no intermediate result is denormal or infinite.

    The reciprocal is refined once and the quotient twice, by its remainder, in fused multiply-adds (Markstein,
    "Computation of elementary functions on the IBM RISC System/6000 processor", 1990). Where that does not come close
    to the driver's own, as with infinities, zeros and the largest and smallest numbers, the driver's result is
    returned.
    """
    driver_quotient = e.emit(Op.FDiv, result, *x)
    if result != "f32" or e.rounds_quotients:
        return driver_quotient

    def fused(a: int, b: int, c: int) -> int:
        return e.library(glsl.OPCODES["fma"], result, a, b, c)

    a, b = x
    less_b, one = e.emit(Op.FNegate, result, b), e.constant(1.0, result)
    reciprocal = e.emit(Op.FDiv, result, one, b)
    reciprocal = fused(fused(less_b, reciprocal, one), reciprocal, reciprocal)
    quotient = e.emit(Op.FMul, result, a, reciprocal)
    for _ in range(2):
        quotient = fused(fused(less_b, quotient, a), reciprocal, quotient)
    off = _absolute(e, e.emit(Op.FSub, result, quotient, driver_quotient), result)
    most = e.emit(Op.FMul, result, _absolute(e, driver_quotient, result), e.constant(_SMALL, result))
    return e.emit(Op.Select, result, e.emit(Op.FOrdLessThan, "i1", off, most), quotient, driver_quotient)


def _absolute(e: SpirvEmitter, x: int, element: str) -> int:
    return e.library(glsl.OPCODES["fabs"], element, x)
