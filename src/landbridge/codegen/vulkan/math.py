"""SPIR-V of the ``math`` dialect.

What every device computes exactly enough is an instruction of GLSL.std.450; its exponentials and logarithms may be
off by far more than C's (Vulkan 1.3 specification, "Precision and Operation of SPIR-V Instructions"), and so may its
angles and their inverses: all of f32 are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import math, vector
from xdsl.ir import Operation

from landbridge.codegen.printing import FUNCTIONS
from landbridge.codegen.vulkan import glsl
from landbridge.codegen.vulkan.arith import apply
from landbridge.codegen.vulkan.emitter import Printer, SpirvEmitter, bits_of
from landbridge.codegen.vulkan.terms import expanded
from landbridge.codegen.vulkan.zeros import Rule
from landbridge.errors import CodegenError
from landbridge.executable.spirv import Op
from landbridge.expansions import doubles
from landbridge.expansions.functions import COMMON, EVERY, LARGE
from landbridge.expansions.terms import Term
from landbridge.ir.prim_ops import RemFOp


def _library(name: str) -> Printer:
    """Returns a printer of an instruction for every float."""
    return apply(lambda e, x, source, result: e.library(glsl.OPCODES[name], result, *x))


def _of_single(name: str, rule: Rule) -> Printer:
    """Returns a printer of a function of f32 alone."""

    def checked(e: SpirvEmitter, x: Sequence[int], source: str, result: str) -> int:
        if source != "f32":
            raise CodegenError(f"math.{name} of {source} has no SPIR-V form; compute it in f32, or on the host")
        return rule(e, x, source, result)

    return apply(checked)


def _named(name: str, of_double: Callable[..., Term] | None = None) -> Printer:
    """Returns a printer of an expansion, with its continuation where it holds for some magnitudes only. ``of_double``:
    for f64.
    """

    def rule(e: SpirvEmitter, x: Sequence[int], source: str, result: str) -> int:
        if source == "f64" and of_double is not None:
            return expanded(e, of_double, x, source)
        found = expanded(e, EVERY[name], x, source)
        return _continued(e, name, x, found) if name in LARGE else found

    return _of_single(name, rule) if of_double is None else apply(rule)


def _continued(e: SpirvEmitter, name: str, x: Sequence[int], found: int) -> int:
    """Returns ``found`` where the expansion of function ``name`` holds, else its continuation in a branch, as that is
    rare and long.
    """
    beyond, continuation = LARGE[name]
    large, after, result = e.label(), e.label(), e.variable("f32", found)
    is_large = expanded(e, beyond, x, "f32")
    e.statement(Op.SelectionMerge, after, 0)
    e.statement(Op.BranchConditional, is_large, large, after)
    e.begin(large)
    e.statement(Op.Store, result, expanded(e, continuation, x, "f32"))
    e.statement(Op.Branch, after)
    e.begin(after)
    return e.load(result, "f32")


def _power(e: SpirvEmitter, x: Sequence[int], source: str, result: str) -> int:
    if source == "f64":
        return expanded(e, doubles.pow_, x, source)
    return expanded(e, (COMMON if e.doubles else EVERY)["pow"], x, source)


def _round(x: Term) -> Term:
    """Rounds to the nearest integer, halves away from zero; GLSL leaves the direction of halves open."""
    whole = x.trunc()
    moved = whole + x.like(1.0).copysign(x)
    return (x - whole).abs().less(0.5).where(whole, x.not_number().where(x, moved)).copysign(x)


def _integer_power(e: SpirvEmitter, op: Operation) -> None:
    """Prints a float to an integer power: the integer is exact in f32 up to 2**24; beyond, results are 0, 1 or
    infinite.
    """
    exponent = op.operands[1]
    number = e.emit(Op.ConvertSToF, "f32", e.ids[exponent])
    apply_to = _of_single("fpowi", lambda e, x, source, result: _power(e, [x[0], number], source, result))
    apply_to(e, op)


def _absolute(e: SpirvEmitter, x: Sequence[int], source: str, result: str) -> int:
    negative = e.emit(Op.SLessThan, "i1", x[0], e.constant(0, source))
    return e.emit(Op.Select, result, negative, e.emit(Op.SNegate, result, x[0]), x[0])


def _count_bits(e: SpirvEmitter, x: Sequence[int], source: str, result: str) -> int:
    if bits_of(source) != 32:  # Vulkan 1.2 only has 32 bits
        wide = [e.emit(Op.UConvert, "i32", part) for part in _halves(e, x[0], source)]
        counts = [e.emit(Op.BitCount, "i32", part) for part in wide]
        total = counts[0] if len(counts) == 1 else e.emit(Op.IAdd, "i32", *counts)
        return e.emit(Op.UConvert, result, total)
    return e.emit(Op.BitCount, result, x[0])


def _halves(e: SpirvEmitter, x: int, element: str) -> list[int]:
    if element != "i64":
        return [x]
    return [x, e.emit(Op.ShiftRightLogical, element, x, e.constant(32, element))]


#: Those of f64 that are written out.
_OF_DOUBLE = {"exp": doubles.exp, "expm1": doubles.expm1, "log": doubles.log_}

PRINTERS: dict[type[Operation], Printer] = {
    math.AbsFOp: _library("fabs"),
    math.AbsIOp: apply(_absolute),
    math.CeilOp: _library("ceil"),
    math.FloorOp: _library("floor"),
    math.TruncOp: _library("trunc"),
    math.RoundEvenOp: _library("roundeven"),
    math.RoundOp: apply(lambda e, x, source, result: expanded(e, _round, x, source)),
    math.CopySignOp: apply(lambda e, x, source, result: expanded(e, lambda a, b: a.copysign(b), x, source)),
    math.CtPopOp: apply(_count_bits),
    math.SqrtOp: _library("sqrt"),
    math.RsqrtOp: _library("rsqrt"),
    math.FmaOp: _library("fma"),
    vector.FMAOp: _library("fma"),
    math.FPowIOp: _integer_power,
    **{op: _named(name, _OF_DOUBLE.get(name)) for op, name in FUNCTIONS.items()},
    math.PowFOp: apply(_power),
    RemFOp: _named("fmod"),
}
