"""LLVM IR of the ``math`` dialect.

What the target has instructions for becomes an LLVM intrinsic. Functions of f32 become helpers of
straight-line code (expansions), one per function and vector width in each module; f16 and bf16 compute in
f32. What is left, and every function of f64, calls the C library lane by lane through the image's imports.
"""

from __future__ import annotations

from xdsl.dialects import math
from xdsl.ir import Operation

from landbridge.codegen.llvm.emitter import LlvmEmitter, LlvmModule, Printer
from landbridge.codegen.llvm.float_arith import fast_flags
from landbridge.codegen.llvm.narrow_floats import in_float, narrow, widen
from landbridge.codegen.llvm.terms import LlvmBody
from landbridge.codegen.llvm.types import element_of, is_float, splat, suffix
from landbridge.codegen.printing import FUNCTIONS
from landbridge.expansions.functions import FOR_LANES, LIMITED
from landbridge.expansions.remainder import is_large, small_fmod
from landbridge.expansions.terms import Term, as_read
from landbridge.ir.prim_ops import RemFOp


def _intrinsic(stem: str) -> Printer:
    """Returns a printer of an LLVM intrinsic over the operands."""

    def emit(e: LlvmEmitter, op: Operation) -> None:
        kind = e.type(op.operands[0].type)
        if is_float(kind):
            flags = fast_flags(op)
            in_float(e, op, lambda wide, names: e.intrinsic(stem, wide, names, flags))
        else:
            e.set(op.results[0], e.intrinsic(stem, kind, [e.names[o] for o in op.operands]))

    return emit


def _bit_intrinsic(stem: str) -> Printer:
    """Returns a printer of an LLVM intrinsic that is defined for every value when its second operand is false."""

    def emit(e: LlvmEmitter, op: Operation) -> None:
        kind = e.type(op.operands[0].type)
        symbol = f"llvm.{stem}.{suffix(kind)}"
        e.module.declare(symbol, kind, [kind, "i1"])
        e.set(op.results[0], f"call {kind} @{symbol}({kind} {e.names[op.operands[0]]}, i1 false)")

    return emit


def _function(name: str) -> Printer:
    """Returns a printer of a function with a name of the C library, over f32 or f64 lanes through a helper."""

    def emit(e: LlvmEmitter, op: Operation) -> None:
        in_float(e, op, lambda kind, names: _call_helper(e.module, name, kind, names))

    return emit


def _call_helper(module: LlvmModule, name: str, kind: str, operands: list[str]) -> str:
    symbol = helper(module, name, kind, len(operands))
    return f"call {kind} {symbol}({', '.join(f'{kind} {o}' for o in operands)})"


def helper(module: LlvmModule, name: str, kind: str, arity: int) -> str:
    """Returns the symbol of the helper that computes ``name`` over lanes of type ``kind``, which is defined on first
    use.
    """
    expansion = FOR_LANES.get(name) if element_of(kind) == "float" else None

    def build(body: LlvmBody, arguments: list[Term]) -> str:
        if expansion is None:
            return _by_lanes(module, name, body, arguments)
        result = expansion(*arguments)
        if name not in LIMITED:
            return str(result.name)
        return _else_library(module, name, arguments, arguments[0].abs().not_less(LIMITED[name]), result)

    return module.define_helper(f'@"math.{name}.{suffix(kind)}"', [kind] * arity, kind, build)


def _else_library(module: LlvmModule, name: str, arguments: list[Term], large: Term, result: Term) -> str:
    """Returns ``result``, replaced by the C library's value in lanes where ``large`` is set."""
    body, kind = result.body, result.kind
    assert isinstance(body, LlvmBody)
    kinds, given = [kind] * len(arguments), ", ".join(f"{kind} {a.name}" for a in arguments)
    any_large = body.any(large)
    # Never inlined: it is rarely called and, for vectors, long.
    symbol = module.define_helper(
        f'@"math.{name}.library.{suffix(kind)}"', kinds, kind, lambda b, a: _by_lanes(module, name, b, a)
    )
    body.lines += [
        f"  br i1 {any_large.name}, label %large, label %join",
        "large:",
        f"  %library = call {kind} {symbol}({given}) noinline",
        f"  %mixed = select {large.kind} {large.name}, {kind} %library, {kind} {result.name}",
        "  br label %join",
        "join:",
        f"  %joined = phi {kind} [ {result.name}, %entry ], [ %mixed, %large ]",
    ]
    return "%joined"


def _by_lanes(module: LlvmModule, name: str, body: LlvmBody, arguments: list[Term]) -> str:
    """Calls the C library's function for each lane and joins the results."""
    kind = body.kind
    arguments = [as_read(x) for x in arguments]
    element = element_of(kind)
    callee = name + ("f" if element == "float" else "")
    module.declare(callee, element, [element] * len(arguments))
    if not body.lanes:
        operands = ", ".join(f"{element} {a.name}" for a in arguments)
        return str(body.emit(f"call {element} @{callee}({operands})", element).name)
    whole = "poison"
    for lane in range(body.lanes):
        parts = [body.emit(f"extractelement {kind} {a.name}, i64 {lane}", element) for a in arguments]
        one = body.emit(f"call {element} @{callee}({', '.join(f'{element} {p.name}' for p in parts)})", element)
        whole = body.emit(f"insertelement {kind} {whole}, {element} {one.name}, i64 {lane}", kind).name
    return whole


def _rsqrt(e: LlvmEmitter, op: Operation) -> None:
    def text(kind: str, names: list[str]) -> str:
        root = e.emit(e.intrinsic("sqrt", kind, names))
        return f"fdiv {fast_flags(op)}{kind} {splat(1.0, kind)}, {root}"

    in_float(e, op, text)


def _integer_power(e: LlvmEmitter, op: Operation) -> None:
    """Prints a float to an integer power: the integer is exact in f32 up to 2**24, beyond that results are 0, 1 or
    inf.
    """
    base, power = op.operands
    kind = e.type(base.type)
    wide, name = widen(e, kind, e.names[base])
    exponent = e.emit(f"sitofp {e.type(power.type)} {e.names[power]} to {wide}")
    result = e.emit(_call_helper(e.module, "pow", wide, [name, exponent]))
    e.names[op.results[0]] = narrow(e, wide, result, kind)


def _remainder(e: LlvmEmitter, op: Operation) -> None:
    in_float(e, op, lambda kind, names: f"call {kind} {_fmod(e.module, kind)}({kind} {names[0]}, {kind} {names[1]})")


def _fmod(module: LlvmModule, kind: str) -> str:
    """Returns the helper of remainders: arithmetic where quotients of f32 are small, else the C library."""

    def build(body: LlvmBody, arguments: list[Term]) -> str:
        if element_of(kind) != "float":
            return _by_lanes(module, "fmod", body, arguments)
        return _else_library(module, "fmod", arguments, is_large(*arguments), small_fmod(*arguments))

    return module.define_helper(f'@"math.fmod.{suffix(kind)}"', [kind] * 2, kind, build)


PRINTERS: dict[type[Operation], Printer] = {
    RemFOp: _remainder,
    math.AbsFOp: _intrinsic("fabs"),
    math.AbsIOp: _bit_intrinsic("abs"),
    math.CeilOp: _intrinsic("ceil"),
    math.CopySignOp: _intrinsic("copysign"),
    math.CountLeadingZerosOp: _bit_intrinsic("ctlz"),
    math.CountTrailingZerosOp: _bit_intrinsic("cttz"),
    math.CtPopOp: _intrinsic("ctpop"),
    math.FloorOp: _intrinsic("floor"),
    math.FmaOp: _intrinsic("fma"),
    math.RoundEvenOp: _intrinsic("roundeven"),
    math.RoundOp: _intrinsic("round"),
    math.SqrtOp: _intrinsic("sqrt"),
    math.TruncOp: _intrinsic("trunc"),
    math.RsqrtOp: _rsqrt,
    math.FPowIOp: _integer_power,
    **{op: _function(name) for op, name in FUNCTIONS.items()},
}
