"""SPIR-V of the ``math`` dialect.

What every device computes exactly enough is an instruction of GLSL.std.450; its exponentials and logarithms may be
off by far more than C's (Vulkan 1.3 specification, "Precision and Operation of SPIR-V Instructions"), so those of f32
are written out. The inverse trigonometric functions are the library's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import math, vector
from xdsl.ir import Operation

from landbridge.codegen.math_builder import Term
from landbridge.codegen.math_expand import EXPANSIONS, LIMITED, cos, exp, expm1, log1p, log_, pow_single, sin
from landbridge.codegen.vulkan import doubles, glsl
from landbridge.codegen.vulkan.arith import Rule, apply
from landbridge.codegen.vulkan.emitter import Emitter, Printer, bits_of
from landbridge.codegen.vulkan.terms import expanded
from landbridge.errors import CodegenError
from landbridge.executable.spirv import Op


def _library(name: str) -> Printer:
    """An instruction for every float."""
    return apply(lambda e, x, source, result: e.library(glsl.NUMBERS[name], result, *x))


def _of_single(name: str, rule: Rule) -> Printer:
    """A function of f32 alone."""

    def checked(e: Emitter, x: Sequence[int], source: str, result: str) -> int:
        if source != "f32":
            raise CodegenError(f"math.{name} of {source} has no SPIR-V form; compute it in f32, or on the host")
        return rule(e, x, source, result)

    return apply(checked)


def _inverse(name: str) -> Rule:
    return lambda e, x, source, result: e.library(glsl.NUMBERS[name], result, *x)


def _expansion(name: str, expansion: Callable[..., Term]) -> Printer:
    return _of_single(name, lambda e, x, source, result: expanded(e, expansion, x, source))


def _named(name: str, of_double: Callable[..., Term] | None = None) -> Printer:
    """An expansion; where that holds for some magnitudes only, the library's function beyond. ``of_double``: of f64."""

    def rule(e: Emitter, x: Sequence[int], source: str, result: str) -> int:
        if source == "f64" and of_double is not None:
            return expanded(e, of_double, x, source)
        found = expanded(e, EXPANSIONS[name], x, source)
        if name not in LIMITED:
            return found
        magnitude = e.library(glsl.NUMBERS["fabs"], source, x[0])
        near = e.emit(Op.FOrdLessThan, "i1", magnitude, e.constant(LIMITED[name], source))
        return e.emit(Op.Select, result, near, found, e.library(glsl.NUMBERS[name], result, x[0]))

    return _of_single(name, rule) if of_double is None else apply(rule)


def _power(e: Emitter, x: Sequence[int], source: str, result: str) -> int:
    if source == "f64":
        return expanded(e, doubles.pow_, x, source)
    return expanded(e, EXPANSIONS["pow"] if e.doubles else pow_single, x, source)


def _cosh(x: Term) -> Term:
    half = _half_exp(x.abs())
    return half + 0.25 / half


def _sinh(x: Term) -> Term:
    a = x.abs()
    m = expm1(a)
    near = (m + m / (m + 1.0)) * 0.5
    return a.less(20.0).where(near, _half_exp(a)).copysign(x)


def _half_exp(a: Term) -> Term:
    """e**a / 2, which overflows no sooner than the result."""
    root = exp(a * 0.5)
    return root * 0.5 * root


def _tan(x: Term) -> Term:
    return x.equal(0.0).where(x, sin(x) / cos(x))


def _asinh(x: Term) -> Term:
    a = x.abs()
    z = a * a
    near = log1p(a + z / (_root(z + 1.0) + 1.0))
    return a.less(1e9).where(near, log_(a) + 0.6931471805599453).copysign(x)


def _acosh(x: Term) -> Term:
    t = x - 1.0
    return x.less(1e9).where(log1p(t + _root(t * (x + 1.0))), log_(x) + 0.6931471805599453)


def _atanh(x: Term) -> Term:
    a = x.abs()
    return (log1p((a + a) / (1.0 - a)) * 0.5).copysign(x)


def _cbrt(x: Term) -> Term:
    """From the logarithm, then one step of Newton's method on y**3 = x."""
    a = x.abs()
    y = exp(log_(a) * (1 / 3))
    y = y - (y * y * y - a) / (y * y * 3.0)
    finite = a.less(float("inf")) & a.greater(0.0)
    return finite.where(y.copysign(x), x)


def _root(x: Term) -> Term:
    return x.body.call("sqrt", [x])


def _round(x: Term) -> Term:
    """To the nearest integer, halves away from zero; GLSL leaves open where halves go."""
    whole = x.trunc()
    moved = whole + x.body.literal(1.0, x.kind).copysign(x)
    return (x - whole).abs().less(0.5).where(whole, x.not_number().where(x, moved)).copysign(x)


def _integer_power(e: Emitter, op: Operation) -> None:
    """The integer is exact in f32 up to 2**24; beyond, results are 0, 1 or infinite."""
    exponent = op.operands[1]
    number = e.emit(Op.ConvertSToF, "f32", e.ids[exponent])
    apply_to = _of_single("fpowi", lambda e, x, source, result: _power(e, [x[0], number], source, result))
    apply_to(e, op)


def _absolute(e: Emitter, x: Sequence[int], source: str, result: str) -> int:
    negative = e.emit(Op.SLessThan, "i1", x[0], e.constant(0, source))
    return e.emit(Op.Select, result, negative, e.emit(Op.SNegate, result, x[0]), x[0])


def _count_bits(e: Emitter, x: Sequence[int], source: str, result: str) -> int:
    if bits_of(source) != 32:  # of 32 bits alone in Vulkan 1.2
        wide = [e.emit(Op.UConvert, "i32", part) for part in _halves(e, x[0], source)]
        counts = [e.emit(Op.BitCount, "i32", part) for part in wide]
        total = counts[0] if len(counts) == 1 else e.emit(Op.IAdd, "i32", *counts)
        return e.emit(Op.UConvert, result, total)
    return e.emit(Op.BitCount, result, x[0])


def _halves(e: Emitter, x: int, element: str) -> list[int]:
    if element != "i64":
        return [x]
    return [x, e.emit(Op.ShiftRightLogical, element, x, e.constant(32, element))]


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
    math.ExpOp: _named("exp", doubles.exp),
    math.Exp2Op: _named("exp2"),
    math.ExpM1Op: _named("expm1"),
    math.LogOp: _named("log", doubles.log_),
    math.Log2Op: _named("log2"),
    math.Log10Op: _named("log10"),
    math.Log1pOp: _named("log1p"),
    math.TanhOp: _named("tanh"),
    math.ErfOp: _named("erf"),
    math.SinOp: _named("sin"),
    math.CosOp: _named("cos"),
    math.PowFOp: apply(_power),
    math.CoshOp: _expansion("cosh", _cosh),
    math.SinhOp: _expansion("sinh", _sinh),
    math.TanOp: _expansion("tan", _tan),
    math.AsinhOp: _expansion("asinh", _asinh),
    math.AcoshOp: _expansion("acosh", _acosh),
    math.AtanhOp: _expansion("atanh", _atanh),
    math.CbrtOp: _expansion("cbrt", _cbrt),
    math.AsinOp: _of_single("asin", _inverse("asin")),
    math.AcosOp: _of_single("acos", _inverse("acos")),
    math.AtanOp: _of_single("atan", _inverse("atan")),
    math.Atan2Op: _of_single("atan2", _inverse("atan2")),
}
