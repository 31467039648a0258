"""LLVM IR of the ``math`` dialect.

What the target has instructions for becomes an LLVM intrinsic. The common functions of f32 become helpers of
straight-line code (math_expand), one per function and vector width in each module; f16 and bf16 compute in
f32. What is left, and every function of f64, calls the C library lane by lane through the image's imports.
"""

from __future__ import annotations

from xdsl.dialects import math
from xdsl.ir import Operation

from landbridge.codegen.llvm.arith import fast_flags
from landbridge.codegen.llvm.emitter import Emitter, ModuleState, Printer
from landbridge.codegen.llvm.math_builder import Body, Term
from landbridge.codegen.llvm.math_expand import EXPANSIONS, LIMITED
from landbridge.codegen.llvm.types import element_of, is_float, lanes_of, splat, suffix, with_element


def _intrinsic(stem: str, *immediate: str) -> Printer:
    """An LLVM intrinsic over the operands and, for some, an immediate i1."""

    def emit(e: Emitter, op: Operation) -> None:
        kind = e.type(op.operands[0].type)
        names = [e.names[o] for o in op.operands]
        if immediate:
            symbol = f"llvm.{stem}.{suffix(kind)}"
            e.module.declare(symbol, kind, [kind, "i1"])
            e.set(op.results[0], f"call {kind} @{symbol}({kind} {names[0]}, i1 {immediate[0]})")
        else:
            e.set(op.results[0], e.intrinsic(stem, kind, names, fast_flags(op) if is_float(kind) else ""))

    return emit


def _function(name: str) -> Printer:
    """A function of the C library's name, over f32 lanes through a helper."""

    def emit(e: Emitter, op: Operation) -> None:
        kind = e.type(op.results[0].type)
        names = [e.names[o] for o in op.operands]
        element = element_of(kind)
        wide = with_element(kind, "float") if element in ("half", "bfloat") else kind
        if wide != kind:
            names = [e.emit(f"fpext {kind} {n} to {wide}") for n in names]
        symbol = helper(e.module, name, wide, len(names))
        call = f"call {wide} {symbol}({', '.join(f'{wide} {n}' for n in names)})"
        if wide == kind:
            e.set(op.results[0], call)
        else:
            e.set(op.results[0], f"fptrunc {wide} {e.emit(call)} to {kind}")

    return emit


def helper(module: ModuleState, name: str, kind: str, arity: int) -> str:
    """The symbol of the helper that computes ``name`` over lanes of type ``kind``; defined when first asked for."""
    symbol = f'@"math.{name}.{suffix(kind)}"'
    if symbol not in module.helpers:
        # Reserved first: a helper may use others.
        module.helpers[symbol] = ""
        expansion = EXPANSIONS.get(name) if element_of(kind) == "float" else None
        params = [f"%x{i}" for i in range(arity)]
        header = f"define internal {kind} {symbol}({', '.join(f'{kind} {p}' for p in params)}) #0 {{\nentry:\n"
        if expansion is None:
            lines = _by_lanes(module, name, kind, params)
        else:
            body = Body(kind)
            arguments = [Term(body, p, kind) for p in params]
            result = expansion(*arguments).name
            if name in LIMITED:
                result = _with_library(module, body, name, result)
            module.declarations.update(body.declarations)
            lines = [*body.lines, f"  ret {kind} {result}"]
        module.helpers[symbol] = header + "\n".join(lines) + "\n}\n"
    return symbol


def _with_library(module: ModuleState, body: Body, name: str, result: str) -> str:
    """``result`` where the magnitude of the argument is below the limit, the C library's value elsewhere."""
    kind = body.kind
    large = Term(body, "%x0", kind).abs().not_less(LIMITED[name])
    any_large = body.any(large)
    body.lines += [
        f"  br i1 {any_large.name}, label %large, label %join",
        "large:",
        f"  %library = call {kind} {_out_of_line(module, name, kind)}({kind} %x0)",
        f"  %mixed = select {large.kind} {large.name}, {kind} %library, {kind} {result}",
        "  br label %join",
        "join:",
        f"  %joined = phi {kind} [ {result}, %entry ], [ %mixed, %large ]",
    ]
    return "%joined"


def _out_of_line(module: ModuleState, name: str, kind: str) -> str:
    """A helper, never inlined, that calls the C library's ``name`` for every lane."""
    symbol = f'@"math.{name}.library.{suffix(kind)}"'
    if symbol not in module.helpers:
        lines = "\n".join(_by_lanes(module, name, kind, ["%x0"]))
        module.helpers[symbol] = f"define internal {kind} {symbol}({kind} %x0) noinline #0 {{\nentry:\n{lines}\n}}\n"
    return symbol


def _by_lanes(module: ModuleState, name: str, kind: str, params: list[str]) -> list[str]:
    """Calls of the C library's function for each lane, put together again."""
    element = element_of(kind)
    callee = name + ("f" if element == "float" else "")
    module.declare(callee, element, [element] * len(params))
    lanes = lanes_of(kind)
    if not lanes:
        args = ", ".join(f"{element} {p}" for p in params)
        return [f"  %r = call {element} @{callee}({args})", f"  ret {element} %r"]
    lines, whole = [], "poison"
    for lane in range(lanes):
        for i, p in enumerate(params):
            lines.append(f"  %a{lane}.{i} = extractelement {kind} {p}, i64 {lane}")
        args = ", ".join(f"{element} %a{lane}.{i}" for i in range(len(params)))
        lines.append(f"  %r{lane} = call {element} @{callee}({args})")
        lines.append(f"  %w{lane} = insertelement {kind} {whole}, {element} %r{lane}, i64 {lane}")
        whole = f"%w{lane}"
    return [*lines, f"  ret {kind} {whole}"]


def _rsqrt(e: Emitter, op: Operation) -> None:
    source = op.operands[0]
    kind = e.type(source.type)
    root = e.emit(e.intrinsic("sqrt", kind, [e.names[source]]))
    e.set(op.results[0], f"fdiv {fast_flags(op)}{kind} {splat(1.0, kind)}, {root}")


def _integer_power(e: Emitter, op: Operation) -> None:
    """Float to an integer power: the integer is exact in f32 up to 2**24, beyond that results are 0, 1 or inf."""
    base, power = op.operands
    kind = e.type(base.type)
    exact = e.emit(f"sitofp {e.type(power.type)} {e.names[power]} to {kind}")
    wide = with_element(kind, "float") if element_of(kind) in ("half", "bfloat") else kind
    names = [e.names[base], exact]
    if wide != kind:
        names = [e.emit(f"fpext {kind} {n} to {wide}") for n in names]
    symbol = helper(e.module, "pow", wide, 2)
    call = f"call {wide} {symbol}({wide} {names[0]}, {wide} {names[1]})"
    if wide == kind:
        e.set(op.results[0], call)
    else:
        e.set(op.results[0], f"fptrunc {wide} {e.emit(call)} to {kind}")


PRINTERS: dict[type[Operation], Printer] = {
    math.AbsFOp: _intrinsic("fabs"),
    math.AbsIOp: _intrinsic("abs", "false"),
    math.CeilOp: _intrinsic("ceil"),
    math.CopySignOp: _intrinsic("copysign"),
    math.CountLeadingZerosOp: _intrinsic("ctlz", "false"),
    math.CountTrailingZerosOp: _intrinsic("cttz", "false"),
    math.CtPopOp: _intrinsic("ctpop"),
    math.FloorOp: _intrinsic("floor"),
    math.FmaOp: _intrinsic("fma"),
    math.RoundEvenOp: _intrinsic("roundeven"),
    math.RoundOp: _intrinsic("round"),
    math.SqrtOp: _intrinsic("sqrt"),
    math.TruncOp: _intrinsic("trunc"),
    math.RsqrtOp: _rsqrt,
    math.FPowIOp: _integer_power,
    math.AcosOp: _function("acos"),
    math.AcoshOp: _function("acosh"),
    math.AsinOp: _function("asin"),
    math.AsinhOp: _function("asinh"),
    math.AtanOp: _function("atan"),
    math.Atan2Op: _function("atan2"),
    math.AtanhOp: _function("atanh"),
    math.CbrtOp: _function("cbrt"),
    math.CosOp: _function("cos"),
    math.CoshOp: _function("cosh"),
    math.ErfOp: _function("erf"),
    math.ExpOp: _function("exp"),
    math.Exp2Op: _function("exp2"),
    math.ExpM1Op: _function("expm1"),
    math.LogOp: _function("log"),
    math.Log10Op: _function("log10"),
    math.Log1pOp: _function("log1p"),
    math.Log2Op: _function("log2"),
    math.PowFOp: _function("pow"),
    math.SinOp: _function("sin"),
    math.SinhOp: _function("sinh"),
    math.TanOp: _function("tan"),
    math.TanhOp: _function("tanh"),
}
