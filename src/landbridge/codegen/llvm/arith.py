"""LLVM IR of constants, integer arithmetic and booleans of the ``arith`` dialect, for scalars and vectors."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from landbridge.codegen.llvm.emitter import LlvmEmitter, Printer
from landbridge.codegen.llvm.types import (
    element_of,
    literal,
    splat,
    with_element,
)
from landbridge.codegen.printing import constant_values, predicate


def _constant(e: LlvmEmitter, op: Operation) -> None:
    kind, values = e.type(op.results[0].type), constant_values(op, e.form)
    if len(values) == 1:
        e.names[op.results[0]] = splat(values[0], kind)
    else:
        element = element_of(kind)
        e.names[op.results[0]] = "<" + ", ".join(f"{element} {literal(v, element)}" for v in values) + ">"


def _binary(opcode: str) -> Printer:
    def emit(e: LlvmEmitter, op: Operation) -> None:
        a, b = op.operands
        e.set(op.results[0], f"{opcode} {e.type(a.type)} {e.names[a]}, {e.names[b]}")

    return emit


def _quotient(opcode: str) -> Printer:
    """Returns a printer of a quotient or remainder; of indices that count elements, none is negative."""
    plain = _binary(opcode)

    def emit(e: LlvmEmitter, op: Operation) -> None:
        if short := _shortened(e, op.operands):
            e.names[op.results[0]] = e.widened(e.emit(f"{opcode} {e.word} {short[0]}, {short[1]}"))
        else:
            plain(e, op)

    return emit


def _overflowing(opcode: str) -> Printer:
    """Returns a printer of addition, subtraction, multiplication or shift; index arithmetic addresses memory and never
    wraps.
    """

    def emit(e: LlvmEmitter, op: Operation) -> None:
        a, b = op.operands
        result = op.results[0]
        x, y = e.names[a], e.names[b]
        kind = e.type(a.type)
        is_index = isinstance(a.type, IndexType)
        if is_index and _fold_index(e, op, opcode, x, y):
            return
        if is_index:
            if opcode == "add" and e.accumulates and _add_base(e, result, x, y):
                return
            name = e.names[result] = e.once(f"{opcode} nsw {kind} {x}, {y}", x, y)
            e.depths[name] = max(e.depths.get(x, 0), e.depths.get(y, 0))
            _record_offset(e, name, opcode, x, y)
            _record_sum(e, name, opcode, x, y)
            _record_short(e, name, opcode, x, y)
            return
        flags = op.properties.get("overflowFlags")
        text = "".join(f"{flag.value} " for flag in getattr(flags, "data", ()))
        e.set(result, f"{opcode} {text}{kind} {x}, {y}")

    return emit


def _add_base(e: LlvmEmitter, result: SSAValue, x: str, y: str) -> bool:
    """Adds ``x`` and ``y``, where one changes in this loop and the other is loop-invariant, and hides the invariant one
    from LLVM; returns False for other operands.

    Otherwise LLVM's strength reduction splits every base into the counters of all enclosing loops and rates all
    combinations: two thirds of the time of the back end, for addresses that are no shorter. A constant stays outside
    the base, so that accesses that differ by one share it and its register.
    """
    if not (x[0] == y[0] == "%"):
        return False
    (x, first), (y, second) = (e.offsets.get(name, (name, 0)) for name in (x, y))
    before, after = e.depths.get(x, 0), e.depths.get(y, 0)
    if before == after or max(before, after) != e.depth:
        return False
    x, y = (e.hidden(x), y) if before < after else (x, e.hidden(y))
    base = name = e.once(f"add nsw i64 {x}, {y}", x, y)
    _record_sum(e, base, "add", x, y)
    _record_short(e, base, "add", x, y)
    e.add_base(base, (x, y))
    e.depths[base] = e.depth
    if constant := first + second:
        name = e.once(f"add nsw i64 {base}, {constant}", base)
        e.depths[name] = e.depth
        e.offsets[name] = (base, constant)
        _record_sum(e, name, "add", base, str(constant))
        _record_short(e, name, "add", base, str(constant))
    e.names[result] = name
    return True


def _is_number(text: str) -> bool:
    return text[0] != "%" and (text[0] == "-" or text.isdigit())


def _fold_index(e: LlvmEmitter, op: Operation, opcode: str, x: str, y: str) -> bool:
    """Folds constants and operations without effect, so that later address arithmetic is short; returns whether it
    could.
    """
    result = op.results[0]
    if _is_number(x) and _is_number(y) and opcode in ("add", "sub", "mul"):
        a, b = int(x), int(y)
        e.names[result] = str(a + b if opcode == "add" else a - b if opcode == "sub" else a * b)
        return True
    if (y == "0" and opcode in ("add", "sub")) or (y == "1" and opcode == "mul"):
        e.names[result] = x
        return True
    if (x == "0" and opcode == "add") or (x == "1" and opcode == "mul"):
        e.names[result] = y
        return True
    return False


def _record_offset(e: LlvmEmitter, name: str, opcode: str, x: str, y: str) -> None:
    if opcode == "add" and _is_number(x):
        x, y = y, x
    if opcode in ("add", "sub") and _is_number(y):
        base, constant = e.offsets.get(x, (x, 0))
        e.offsets[name] = (base, constant + (int(y) if opcode == "add" else -int(y)))


def _record_sum(e: LlvmEmitter, name: str, opcode: str, x: str, y: str) -> None:
    """Records of which names and constants ``name`` is a sum, for loops that carry pointers."""
    if not e.module.isa.advances:
        return
    if opcode == "mul":
        if _is_number(x):
            x, y = y, x
        if _is_number(y):
            e.sums[name] = ((x, int(y)),), 0
        else:
            e.products[name] = x, y
    elif opcode in ("add", "sub"):
        sign = 1 if opcode == "add" else -1
        terms = tuple((v, by) for v, by in ((x, 1), (y, sign)) if not _is_number(v))
        e.sums[name] = terms, sum(int(v) * by for v, by in ((x, 1), (y, sign)) if _is_number(v))


def _record_short(e: LlvmEmitter, name: str, opcode: str, x: str, y: str) -> None:
    """Records that ``name`` has the bits of an address, if both operands do: it counts elements, too."""
    if opcode != "shl" and name[0] == "%" and e.is_short(x) and e.is_short(y):
        e.short.add(name)


def _shortened(e: LlvmEmitter, values: Sequence[SSAValue]) -> list[str] | None:
    """Returns index ``values`` as values of the bits of an address; None if one may have more, or is no index."""
    names = [e.names[value] for value in values]
    if not all(isinstance(v.type, IndexType) and e.is_short(n) for v, n in zip(values, names, strict=True)):
        return None
    return [e.narrow(name) for name in names] if any(name[0] == "%" for name in names) else None


def _integer_intrinsic(stem: str) -> Printer:
    def emit(e: LlvmEmitter, op: Operation) -> None:
        kind = e.type(op.operands[0].type)
        if short := _shortened(e, op.operands):
            e.names[op.results[0]] = e.widened(e.emit(e.intrinsic(stem, e.word, short)))
            return
        e.set(op.results[0], e.intrinsic(stem, kind, [e.names[o] for o in op.operands]))

    return emit


def _round_division(signed: bool, up: bool) -> Printer:
    """Returns a printer of division rounded down or up: the truncated quotient, corrected where a remainder is left."""

    def emit(e: LlvmEmitter, op: Operation) -> None:
        a, b = op.operands
        kind, x, y = e.type(a.type), e.names[a], e.names[b]
        zero = splat(0, kind)
        quotient = e.emit(f"{'sdiv' if signed else 'udiv'} {kind} {x}, {y}")
        remainder = e.emit(f"{'srem' if signed else 'urem'} {kind} {x}, {y}")
        flag = e.emit(f"icmp ne {kind} {remainder}, {zero}")
        if signed:
            signs = e.emit(f"xor {kind} {x}, {y}")
            # Truncation went up when the signs differ, down when they are equal.
            wrong_side = e.emit(f"icmp {'sge' if up else 'slt'} {kind} {signs}, {zero}")
            flag = e.emit(f"and {with_element(kind, 'i1')} {flag}, {wrong_side}")
        correction = e.emit(f"zext {with_element(kind, 'i1')} {flag} to {kind}")
        e.set(op.results[0], f"{'add' if up else 'sub'} {kind} {quotient}, {correction}")

    return emit


def _compare_int(e: LlvmEmitter, op: Operation) -> None:
    a, b = op.operands
    if short := _shortened(e, op.operands):
        e.set(op.results[0], f"icmp {predicate(op)} {e.word} {short[0]}, {short[1]}")
        return
    e.set(op.results[0], f"icmp {predicate(op)} {e.type(a.type)} {e.names[a]}, {e.names[b]}")


def _select(e: LlvmEmitter, op: Operation) -> None:
    c, a, b = op.operands
    if short := _shortened(e, op.operands[1:]):
        chosen = e.emit(f"select {e.type(c.type)} {e.names[c]}, {e.word} {short[0]}, {e.word} {short[1]}")
        e.names[op.results[0]] = e.widened(chosen)
        return
    kind = e.type(a.type)
    e.set(op.results[0], f"select {e.type(c.type)} {e.names[c]}, {kind} {e.names[a]}, {kind} {e.names[b]}")


def _extended_multiply(signed: bool) -> Printer:
    """Returns a printer of both halves of a product, low then high."""

    def emit(e: LlvmEmitter, op: Operation) -> None:
        a, b = op.operands
        kind = e.type(a.type)
        bits = int(element_of(kind)[1:])
        wide = with_element(kind, f"i{2 * bits}")
        opcode = "sext" if signed else "zext"
        x, y = (e.emit(f"{opcode} {kind} {e.names[v]} to {wide}") for v in (a, b))
        product = e.emit(f"mul {wide} {x}, {y}")
        e.set(op.results[0], f"trunc {wide} {product} to {kind}")
        shifted = e.emit(f"lshr {wide} {product}, {splat(bits, wide)}")
        e.set(op.results[1], f"trunc {wide} {shifted} to {kind}")

    return emit


def _extended_add(e: LlvmEmitter, op: Operation) -> None:
    a, b = op.operands
    kind = e.type(a.type)
    total = e.emit(f"add {kind} {e.names[a]}, {e.names[b]}")
    e.names[op.results[0]] = total
    e.set(op.results[1], f"icmp ult {kind} {total}, {e.names[a]}")


PRINTERS: dict[type[Operation], Printer] = {
    arith.ConstantOp: _constant,
    arith.AddiOp: _overflowing("add"),
    arith.SubiOp: _overflowing("sub"),
    arith.MuliOp: _overflowing("mul"),
    arith.ShLIOp: _overflowing("shl"),
    arith.AddUIExtendedOp: _extended_add,
    arith.MulUIExtendedOp: _extended_multiply(signed=False),
    arith.MulSIExtendedOp: _extended_multiply(signed=True),
    arith.DivUIOp: _quotient("udiv"),
    arith.DivSIOp: _quotient("sdiv"),
    arith.RemUIOp: _quotient("urem"),
    arith.RemSIOp: _quotient("srem"),
    arith.FloorDivSIOp: _round_division(signed=True, up=False),
    arith.CeilDivSIOp: _round_division(signed=True, up=True),
    arith.CeilDivUIOp: _round_division(signed=False, up=True),
    arith.MinUIOp: _integer_intrinsic("umin"),
    arith.MaxUIOp: _integer_intrinsic("umax"),
    arith.MinSIOp: _integer_intrinsic("smin"),
    arith.MaxSIOp: _integer_intrinsic("smax"),
    arith.AndIOp: _binary("and"),
    arith.OrIOp: _binary("or"),
    arith.XOrIOp: _binary("xor"),
    arith.ShRUIOp: _binary("lshr"),
    arith.ShRSIOp: _binary("ashr"),
    arith.CmpiOp: _compare_int,
    arith.SelectOp: _select,
}
