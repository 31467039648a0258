"""Arithmetic on f16 and bf16: computed in f32, rounded after each operation.

Conversions are written out wherever LLVM would call a function of a compiler's own library, which an image
cannot import: every rounding to bf16 (and the instruction for it flushes subnormals), f64 to f16, and all of
f16 on CPUs that have no instruction for it. All round to nearest, ties to even, once.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation

from landbridge.codegen.llvm.emitter import LlvmEmitter
from landbridge.codegen.llvm.terms import LlvmBody
from landbridge.codegen.llvm.types import element_of, suffix, with_element
from landbridge.expansions.narrow import narrowed, widened
from landbridge.expansions.terms import Term


def is_narrow(kind: str) -> bool:
    """Returns whether the lanes of an LLVM type are f16 or bf16."""
    return element_of(kind) in ("half", "bfloat")


def in_float(e: LlvmEmitter, op: Operation, text: Callable[[str, list[str]], str]) -> None:
    """Defines the result of ``op`` by ``text(type, operands)``, an instruction that gets no narrow type."""
    result = op.results[0]
    kind = e.type(result.type)
    names = [e.names[o] for o in op.operands]
    if not is_narrow(kind):
        e.set(result, text(kind, names))
        return
    wide = with_element(kind, "float")
    value = e.emit(text(wide, [widen(e, kind, name)[1] for name in names]))
    e.names[result] = narrow(e, wide, value, kind)


def widen(e: LlvmEmitter, kind: str, name: str) -> tuple[str, str]:
    """Returns type and name of ``name``, widened to f32 if its lanes are narrow."""
    if not is_narrow(kind):
        return kind, name
    wide = with_element(kind, "float")
    if element_of(kind) == "half" and e.module.isa.half:
        return wide, e.emit(f"fpext {kind} {name} to {wide}")

    # Not LLVM's fpext of bf16 either: it would move operations to the narrow side of one, and those need the library.
    def build(body: LlvmBody, arguments: list[Term]) -> str:
        bits = arguments[0].convert("bitcast", "i16").convert("zext", "i32")
        return str(widened(bits, suffix(element_of(kind))).name)

    symbol = f'@"widen.{suffix(kind)}"'
    e.module.define_helper(symbol, [kind], wide, build)
    return wide, e.emit(f"call {wide} {symbol}({kind} {name})")


def narrow(e: LlvmEmitter, wide: str, name: str, kind: str) -> str:
    """Returns the name of the float ``name`` of type ``wide`` rounded to ``kind``, which may be ``wide`` itself."""
    if wide == kind:
        return name
    source, result = element_of(wide), element_of(kind)
    if result == "float" or (result == "half" and source == "float" and e.module.isa.half):
        return e.emit(f"fptrunc {wide} {name} to {kind}")

    def build(body: LlvmBody, arguments: list[Term]) -> str:
        bits = narrowed(arguments[0], suffix(result))
        return str(bits.convert("trunc", "i16").convert("bitcast", result).name)

    symbol = f'@"narrow.{suffix(wide)}.{suffix(kind)}"'
    e.module.define_helper(symbol, [wide], kind, build)
    return e.emit(f"call {kind} {symbol}({wide} {name})")
