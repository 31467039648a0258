"""LLVM IR of the ``vector`` dialect, except its loads and stores."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import vector
from xdsl.dialects.builtin import DenseArrayBase
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Operation

from landbridge.codegen.llvm.casts import bitcast
from landbridge.codegen.llvm.emitter import LlvmEmitter, Printer
from landbridge.codegen.llvm.float_arith import fast_flags
from landbridge.codegen.llvm.narrow_floats import in_float
from landbridge.codegen.llvm.types import element_of, is_float, lanes_of, suffix
from landbridge.codegen.printing import broadcast_vector, lane_position

#: The bits of elements of vectors that masks may select.
_ELEMENT_BITS = {"float": 32, "double": 64, "i32": 32, "i64": 64}
#: Reduction stems, and for each the operation that folds in the accumulator (an opcode or an intrinsic).
_REDUCTIONS: dict[CombiningKindFlag, tuple[str, str]] = {
    CombiningKindFlag.ADD: ("add", "add"),
    CombiningKindFlag.MUL: ("mul", "mul"),
    CombiningKindFlag.MINUI: ("umin", "llvm.umin"),
    CombiningKindFlag.MINSI: ("smin", "llvm.smin"),
    CombiningKindFlag.MAXUI: ("umax", "llvm.umax"),
    CombiningKindFlag.MAXSI: ("smax", "llvm.smax"),
    CombiningKindFlag.AND: ("and", "and"),
    CombiningKindFlag.OR: ("or", "or"),
    CombiningKindFlag.XOR: ("xor", "xor"),
    CombiningKindFlag.MINNUMF: ("fmin", "llvm.minnum"),
    CombiningKindFlag.MAXNUMF: ("fmax", "llvm.maxnum"),
    CombiningKindFlag.MINIMUMF: ("fminimum", "llvm.minimum"),
    CombiningKindFlag.MAXIMUMF: ("fmaximum", "llvm.maximum"),
}


def _broadcast(e: LlvmEmitter, op: Operation) -> None:
    result, name = op.results[0], e.names[op.operands[0]]
    if broadcast_vector(op) is not None:
        e.names[result] = name
        return
    kind = e.type(result.type)
    element = element_of(kind)
    if name[0] != "%":
        e.names[result] = f"splat ({element} {name})"
        return
    one = e.once(f"insertelement {kind} poison, {element} {name}, i64 0", name)
    lanes = lanes_of(kind)
    e.names[result] = e.once(f"shufflevector {kind} {one}, {kind} poison, <{lanes} x i32> zeroinitializer", one)


def _fma(e: LlvmEmitter, op: Operation) -> None:
    in_float(e, op, lambda kind, names: e.intrinsic("fma", kind, names))


def _reduction(e: LlvmEmitter, op: Operation) -> None:
    """Prints a reduction: sums and products of floats in lane order, or as a tree where ``reassoc`` is set."""
    source, *accumulator = op.operands
    combining = op.properties["kind"]
    assert isinstance(combining, CombiningKindAttr)
    kind, flags = e.type(source.type), fast_flags(op)
    element = element_of(kind)
    stem, fold = _REDUCTIONS[combining.data]
    start = e.names[accumulator[0]] if accumulator else ""
    if is_float(kind) and stem in ("add", "mul"):
        neutral = "-0.0" if stem == "add" else "1.0"
        symbol = f"llvm.vector.reduce.f{stem}.{suffix(kind)}"
        e.module.declare(symbol, element, [element, kind])
        call = f"call {flags}{element} @{symbol}({element} {start or neutral}, {kind} {e.names[source]})"
        e.set(op.results[0], call)
        return
    symbol = f"llvm.vector.reduce.{stem}.{suffix(kind)}"
    e.module.declare(symbol, element, [kind])
    call = f"call {flags if is_float(kind) else ''}{element} @{symbol}({kind} {e.names[source]})"
    if not start:
        e.set(op.results[0], call)
    elif fold.startswith("llvm."):
        e.set(op.results[0], e.intrinsic(fold[5:], element, [e.emit(call), start]))
    else:
        e.set(op.results[0], f"{fold} {element} {e.emit(call)}, {start}")


def _position(e: LlvmEmitter, op: Operation, dynamic: int) -> str:
    lane = lane_position(op, dynamic)
    return str(lane) if isinstance(lane, int) else e.names[lane]


def _extract(e: LlvmEmitter, op: Operation) -> None:
    source = op.operands[0]
    e.set(op.results[0], f"extractelement {e.type(source.type)} {e.names[source]}, i64 {_position(e, op, 1)}")


def _insert(e: LlvmEmitter, op: Operation) -> None:
    value, dest = op.operands[0], op.operands[1]
    kind = e.type(dest.type)
    lane = _position(e, op, 2)
    e.set(
        op.results[0],
        f"insertelement {kind} {e.names[dest]}, {e.type(value.type)} {e.names[value]}, i64 {lane}",
    )


def _shuffle(e: LlvmEmitter, op: Operation) -> None:
    a, b = op.operands
    mask = op.properties["mask"]
    assert isinstance(mask, DenseArrayBase)
    values = [int(v) for v in mask.get_values()]
    first, second = e.type(a.type), e.type(b.type)
    x, y = e.names[a], e.names[b]
    if first != second:
        x, y, first, values = _equalize(e, (first, x), (second, y), values)
    if _is_blend(e, first, values):
        mask_name = _blend_mask(e, [v >= len(values) for v in values])
        e.set(op.results[0], f"select <{len(values)} x i1> {mask_name}, {first} {y}, {first} {x}")
        return
    lanes = ", ".join("i32 poison" if v < 0 else f"i32 {v}" for v in values)
    e.set(op.results[0], f"shufflevector {first} {x}, {first} {y}, <{len(values)} x i32> <{lanes}>")


def _is_blend(e: LlvmEmitter, kind: str, mask: list[int]) -> bool:
    """Returns whether ``mask`` selects each lane from that lane of one of two vectors of ``kind``, both are used, and a
    mask in a register does that faster than a shuffle.
    """
    lanes, bits = len(mask), _ELEMENT_BITS.get(element_of(kind))
    if bits is None or lanes_of(kind) != lanes or bits * lanes != e.module.isa.blend_bits:
        return False
    stays = all(v % lanes == i for i, v in enumerate(mask) if v >= 0)
    return stays and any(0 <= v < lanes for v in mask) and max(mask) >= lanes


def _blend_mask(e: LlvmEmitter, lanes: Sequence[bool]) -> str:
    """Returns the name of a mask with ``lanes``, which is defined where the function begins.

    LLVM makes a shuffle of a blend with a constant mask, and does not know what an instruction of assembly returns,
    though it is none here.
    """
    bits = sum(1 << i for i, lane in enumerate(lanes) if lane)
    number = e.at_entry(f'call i{len(lanes)} asm "", "=^Yk,0"(i{len(lanes)} {bits}) nounwind memory(none)')
    return e.at_entry(f"bitcast i{len(lanes)} {number} to <{len(lanes)} x i1>")


def _equalize(
    e: LlvmEmitter, a: tuple[str, str], b: tuple[str, str], mask: list[int]
) -> tuple[str, str, str, list[int]]:
    """Widens the shorter vector with undefined lanes and adapts the mask, as LLVM shuffles vectors of one type."""
    n, m = lanes_of(a[0]), lanes_of(b[0])
    wide = max(n, m)
    kind = f"<{wide} x {element_of(a[0])}>"
    names = []
    for text, name in (a, b):
        own_lanes = lanes_of(text)
        lanes = ", ".join(f"i32 {i}" if i < own_lanes else "i32 poison" for i in range(wide))
        grown = f"shufflevector {text} {name}, {text} poison, <{wide} x i32> <{lanes}>"
        names.append(name if own_lanes == wide else e.emit(grown))
    return names[0], names[1], kind, [v if v < n else v - n + wide for v in mask]


def _create_mask(e: LlvmEmitter, op: Operation) -> None:
    kind = e.type(op.results[0].type)
    lanes, count = lanes_of(kind), e.names[op.operands[0]]
    if count[0] != "%":
        bits = ", ".join(f"i1 {'true' if i < int(count) else 'false'}" for i in range(lanes))
        e.names[op.results[0]] = f"<{bits}>"
        return
    # Clamp first: then 32-bit lanes can hold the count, which is what vector compares are cheap in.
    high = e.emit(e.intrinsic("smin", "i64", [count, str(lanes)]))
    clamped = e.emit(e.intrinsic("smax", "i64", [high, "0"]))
    narrow = e.emit(f"trunc i64 {clamped} to i32")
    wide = f"<{lanes} x i32>"
    one = e.emit(f"insertelement {wide} poison, i32 {narrow}, i64 0")
    all_lanes = e.emit(f"shufflevector {wide} {one}, {wide} poison, {wide} zeroinitializer")
    steps = ", ".join(f"i32 {i}" for i in range(lanes))
    e.set(op.results[0], f"icmp ult {wide} <{steps}>, {all_lanes}")


PRINTERS: dict[type[Operation], Printer] = {
    vector.BroadcastOp: _broadcast,
    vector.FMAOp: _fma,
    vector.ReductionOp: _reduction,
    vector.ExtractOp: _extract,
    vector.InsertOp: _insert,
    vector.ShuffleOp: _shuffle,
    vector.CreateMaskOp: _create_mask,
    vector.BitcastOp: bitcast,
}
