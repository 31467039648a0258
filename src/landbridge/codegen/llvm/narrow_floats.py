"""Arithmetic on f16 and bf16: computed in f32, rounded after each operation.

Conversions are written out wherever LLVM would call a function of a compiler's own library, which an image
cannot import: every rounding to bf16 (and the instruction for it flushes subnormals), f64 to f16, and all of
f16 on CPUs that have no instruction for it. All round to nearest, ties to even, once.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation

from landbridge.codegen.llvm.emitter import Emitter
from landbridge.codegen.llvm.math_builder import LlvmBody, Term
from landbridge.codegen.llvm.types import element_of, suffix, with_element


def is_narrow(kind: str) -> bool:
    """Whether the lanes of an LLVM type are f16 or bf16."""
    return element_of(kind) in ("half", "bfloat")


def in_float(e: Emitter, op: Operation, text: Callable[[str, list[str]], str]) -> None:
    """Define the result of ``op`` by ``text(type, operands)``, an instruction that is given no narrow type."""
    result = op.results[0]
    kind = e.type(result.type)
    names = [e.names[o] for o in op.operands]
    if not is_narrow(kind):
        e.set(result, text(kind, names))
        return
    wide = with_element(kind, "float")
    value = e.emit(text(wide, [widen(e, kind, name)[1] for name in names]))
    e.names[result] = narrow(e, wide, value, kind)


def widen(e: Emitter, kind: str, name: str) -> tuple[str, str]:
    """Type and name of ``name`` as f32 if its lanes are narrow, else of itself."""
    if not is_narrow(kind):
        return kind, name
    wide = with_element(kind, "float")
    if element_of(kind) == "half" and e.module.isa.half:
        return wide, e.emit(f"fpext {kind} {name} to {wide}")
    # Not LLVM's fpext of bf16 either: it would move operations to the narrow side of one, and those need the library.
    expand = _half_to_float if element_of(kind) == "half" else _bfloat_to_float
    symbol = f'@"widen.{suffix(kind)}"'
    e.module.define_helper(symbol, [kind], wide, lambda body, args: expand(args[0]).name)
    return wide, e.emit(f"call {wide} {symbol}({kind} {name})")


def narrow(e: Emitter, wide: str, name: str, kind: str) -> str:
    """The name of the float ``name`` of type ``wide`` rounded to ``kind``, which may be ``wide`` itself."""
    if wide == kind:
        return name
    source, result = element_of(wide), element_of(kind)
    if result == "float" or (result == "half" and source == "float" and e.module.isa.half):
        return e.emit(f"fptrunc {wide} {name} to {kind}")

    def build(body: LlvmBody, arguments: list[Term]) -> str:
        x = arguments[0] if source == "float" else _round_to_odd(arguments[0])
        return str((_float_to_half(x) if result == "half" else _float_to_bfloat(x)).name)

    symbol = f'@"narrow.{suffix(wide)}.{suffix(kind)}"'
    e.module.define_helper(symbol, [wide], kind, build)
    return e.emit(f"call {kind} {symbol}({wide} {name})")


def _float_to_bfloat(x: Term) -> Term:
    bits = x.bits()
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = (bits >> 16) | 0x40
    return x.not_number().where(quiet, rounded).convert("trunc", "i16").convert("bitcast", "bfloat")


def _bfloat_to_float(x: Term) -> Term:
    return (x.convert("bitcast", "i16").convert("zext", "i32") << 16).as_float()


def _float_to_half(x: Term) -> Term:
    bits = x.bits()
    magnitude = bits & 0x7FFFFFFF
    # Rebias the exponent by 15 - 127 and round away 13 bits of the fraction, ties to even.
    normal = (magnitude + (((15 - 127) << 23) + 0xFFF) + ((magnitude >> 13) & 1)) >> 13
    # Adding 1/2 puts the last bit of a subnormal f16 into the last bit of the sum: the addition rounds.
    half = x.body.constant(0.5, "float")
    subnormal = (magnitude.as_float() + half).bits() - half.bits()
    result = magnitude.less(113 << 23).where(subnormal, normal)
    infinite = magnitude.greater(255 << 23).where(x.body.constant(0x7E00, "i32"), 0x7C00)
    result = magnitude.less(143 << 23).where(result, infinite)
    return (result | ((bits >> 16) & 0x8000)).convert("trunc", "i16").convert("bitcast", "half")


def _half_to_float(x: Term) -> Term:
    bits = x.convert("bitcast", "i16").convert("zext", "i32")
    shifted = (bits & 0x7FFF) << 13
    exponent = shifted & (0x1F << 23)
    normal = shifted + ((127 - 15) << 23)
    # The smallest exponent has no hidden bit: with one added, subtracting its value again normalizes.
    lifted = (normal + (1 << 23)).as_float() - 2.0**-14
    result = exponent.equal(0).where(lifted.bits(), normal)
    result = exponent.equal(0x1F << 23).where(normal + ((255 - 143) << 23), result)
    return (result | ((bits & 0x8000) << 16)).as_float()


def _round_to_odd(x: Term) -> Term:
    """f64 to f32 such that rounding the result once more, to fewer bits, is as rounding x once."""
    nearest = x.to_single()
    back = nearest.to_double()
    bits = nearest.bits()
    towards_zero = back.abs().greater(x.abs()).where(bits - 1, bits)
    return back.differs(x).where(towards_zero | 1, bits).as_float()
