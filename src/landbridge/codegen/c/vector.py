"""C of the ``vector`` dialect, except its loads and stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import vector
from xdsl.dialects.builtin import DenseArrayBase
from xdsl.dialects.utils import FastMathFlag
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Operation, SSAValue

from landbridge.codegen.c import lanes
from landbridge.codegen.c.emitter import CEmitter, Printer
from landbridge.codegen.c.scalar import convert_float, signed
from landbridge.codegen.c.types import CType, lane, make
from landbridge.codegen.printing import allows, broadcast_vector, lane_position
from landbridge.errors import CodegenError

#: How two lanes are combined; ``{K}`` is the element, ``{f}`` the suffix of C functions on it.
_COMBINE: dict[CombiningKindFlag, str] = {
    CombiningKindFlag.ADD: "({0} + {1})",
    CombiningKindFlag.MUL: "({0} * {1})",
    CombiningKindFlag.MINUI: "({0} < {1} ? {0} : {1})",
    CombiningKindFlag.MAXUI: "({0} > {1} ? {0} : {1})",
    CombiningKindFlag.MINSI: "({s0} < {s1} ? {0} : {1})",
    CombiningKindFlag.MAXSI: "({s0} > {s1} ? {0} : {1})",
    CombiningKindFlag.AND: "({0} & {1})",
    CombiningKindFlag.OR: "({0} | {1})",
    CombiningKindFlag.XOR: "({0} ^ {1})",
    CombiningKindFlag.MINNUMF: "fmin{f}({0}, {1})",
    CombiningKindFlag.MAXNUMF: "fmax{f}({0}, {1})",
    CombiningKindFlag.MINIMUMF: "lb_minimum_{K}({0}, {1})",
    CombiningKindFlag.MAXIMUMF: "lb_maximum_{K}({0}, {1})",
}
_ROUNDING = (CombiningKindFlag.ADD, CombiningKindFlag.MUL)


def _broadcast(e: CEmitter, op: Operation) -> None:
    result, name = op.results[0], e.names[op.operands[0]]
    if broadcast_vector(op) is not None:
        e.names[result] = name
    else:
        e.set(result, e.unit.vector(e.kind(result), [name]))


def _fma(e: CEmitter, op: Operation) -> None:
    kind = e.kind(op.results[0])
    suffix = "" if kind.element == "f64" else "f"

    def rule(x: Sequence[str]) -> str:
        wide = [convert_float(kind, CType("f32"), t) if kind.is_narrow else t for t in x]
        text = f"fma{suffix}({', '.join(wide)})"
        return convert_float(CType("f32"), kind, text) if kind.is_narrow else text

    name = f"lb_fma_{kind.text}"
    native = lanes.native(e.unit, op, [kind] * 3, kind)
    e.unit.define(name, lambda: lanes.helper(name, [kind] * 3, kind, rule, native))
    e.set(op.results[0], f"{name}({', '.join(e.names[o] for o in op.operands)})")


def accumulated(kind: CType) -> CType:
    """Returns the type in which lanes of ``kind`` are combined."""
    return CType("f32") if kind.is_narrow else CType(kind.element)


def combination(kind: CType, combining: CombiningKindFlag) -> Callable[[str, str], str]:
    """Returns the C expression of two lanes of ``kind``, in the type that ``accumulated`` gives, combined."""
    one, wide = CType(kind.element), accumulated(kind)
    suffix = "f" if wide.element == "f32" else ""

    def combine(a: str, b: str) -> str:
        text = _COMBINE[combining].format(a, b, s0=signed(wide, a), s1=signed(wide, b), K=wide.element, f=suffix)
        # Rounded to the element after each step, as every operation on it is.
        return convert_float(one, wide, convert_float(wide, one, text)) if kind.is_narrow else f"({wide.scalar}){text}"

    return combine


def combining_of(op: Operation, kind: CType) -> tuple[CombiningKindFlag, bool]:
    """Returns how ``vector.reduction`` combines lanes of ``kind``, and whether in their order."""
    combining = op.properties["kind"]
    assert isinstance(combining, CombiningKindAttr)
    return combining.data, kind.is_float and combining.data in _ROUNDING and not allows(op, FastMathFlag.REASSOC)


def _reduction(e: CEmitter, op: Operation) -> None:
    """Prints a reduction: sums and products of floats in lane order, or as a tree where ``reassoc`` is set."""
    source, *accumulator = op.operands
    kind = e.kind(source)
    combining, in_order = combining_of(op, kind)
    tree = kind.is_native and not in_order
    name = f"lb_reduce_{combining.name.lower()}{'' if tree else '_in_order'}{len(accumulator) or ''}_{kind.text}"
    e.unit.define(name, lambda: _reduce(name, kind, combining, tree, bool(accumulator)))
    e.set(op.results[0], f"{name}({', '.join(e.names[o] for o in op.operands)})")


def _reduce(name: str, kind: CType, combining: CombiningKindFlag, tree: bool, accumulates: bool) -> str:
    """Returns the definition of a reduction of ``a``, with an accumulator ``b`` if it has one."""
    one = CType(kind.element)
    wide = accumulated(kind)
    combine = combination(kind, combining)
    accumulator = convert_float(one, wide, "b")
    read = convert_float(one, wide, lane(kind, "a", "i"))
    parameters = f"{kind.text} a, {kind.scalar} b" if accumulates else f"{kind.text} a"
    lines = [
        f"LB_INLINE {kind.scalar} {name}({parameters}) {{",
        f"  {wide.scalar} x[{kind.lanes}], r;",
        f"  for (int i = 0; i < {kind.lanes}; ++i) x[i] = {read};",
    ]
    if tree:
        total = combine("x[0]", accumulator) if accumulates else "x[0]"
        lines += [
            f"  for (int n = {kind.lanes // 2}; n; n /= 2)",
            f"    for (int i = 0; i < n; ++i) x[i] = {combine('x[i]', 'x[i + n]')};",
            f"  r = {total};",
        ]
    else:
        lines += [
            f"  r = {combine(accumulator, 'x[0]') if accumulates else 'x[0]'};",
            f"  for (int i = 1; i < {kind.lanes}; ++i) r = {combine('r', 'x[i]')};",
        ]
    last = "r & 1" if kind.element == "i1" else convert_float(wide, one, "r")
    return "\n".join([*lines, f"  return {last};", "}"])


def _position(e: CEmitter, op: Operation, dynamic: int) -> str:
    position = lane_position(op, dynamic)
    return str(position) if isinstance(position, int) else e.names[position]


def _extract(e: CEmitter, op: Operation) -> None:
    source = op.operands[0]
    e.set(op.results[0], lane(e.kind(source), e.names[source], _position(e, op, 1)))


def _insert(e: CEmitter, op: Operation) -> None:
    value, dest = op.operands[0], op.operands[1]
    name = e.variable(op.results[0], e.names[dest])
    e.line(f"{lane(e.kind(dest), name, _position(e, op, 2))} = {e.names[value]};")


def _shuffle(e: CEmitter, op: Operation) -> None:
    a, b = op.operands
    mask = op.properties["mask"]
    assert isinstance(mask, DenseArrayBase)
    first, second = e.kind(a), e.kind(b)
    x, y = (_named(e, v) for v in (a, b))
    result = e.kind(op.results[0])
    values = []
    for number in (int(v) for v in mask.get_values()):
        # A negative number is a lane that nobody reads.
        inside = number < first.lanes
        source = (first, x, max(number, 0)) if inside else (second, y, number - first.lanes)
        values.append(lane(*source))
    if e.unit.shuffles and first == second and first.is_native and result.is_native:
        elements = ", ".join(str(int(v)) for v in mask.get_values())
        e.set(op.results[0], f"LB_SHUFFLE({result.text}, {x}, {y}, ({', '.join(values)}), {elements})")
    else:
        e.set(op.results[0], make(result, values))


def _named(e: CEmitter, value: SSAValue) -> str:
    """Returns a variable for a value that may be printed as a literal, as not all literals can be subscripted."""
    name = e.names[value]
    if name.isidentifier():
        return name
    local = e.fresh()
    e.line(f"const {e.kind(value).text} {local} = {name};")
    return local


def _create_mask(e: CEmitter, op: Operation) -> None:
    kind, count = e.kind(op.results[0]), e.names[op.operands[0]]
    name = f"lb_first_{kind.text}"
    values = e.unit.use(kind.of("s32"))
    clamped = f"(int32_t)(a < {kind.lanes} ? a : {kind.lanes})"
    counting = make(values, [str(i) for i in range(kind.lanes)])
    native = lanes.truths(f"{counting} < {clamped}", kind) if kind.is_native else None
    e.unit.define(name, lambda: lanes.helper(name, [CType("index")], kind, lambda x: "i < a", native))
    e.set(op.results[0], f"{name}({count})")
    e.retained[op.results[0]] = count


def _bitcast(e: CEmitter, op: Operation) -> None:
    before, after = e.kind(op.operands[0]), e.kind(op.results[0])
    if before.bits * before.lanes != after.bits * after.lanes:
        raise CodegenError(f"vector.bitcast of {op.operands[0].type} to {op.results[0].type}: sizes differ")
    name = f"lb_bits_{before.text}_{after.text}"
    text = f"LB_INLINE {after.text} {name}({before.text} a) {{ {after.text} r; memcpy(&r, &a, sizeof r); return r; }}"
    e.unit.define(name, lambda: text)
    e.set(op.results[0], f"{name}({e.names[op.operands[0]]})")


PRINTERS: dict[type[Operation], Printer] = {
    vector.BroadcastOp: _broadcast,
    vector.FMAOp: _fma,
    vector.ReductionOp: _reduction,
    vector.ExtractOp: _extract,
    vector.InsertOp: _insert,
    vector.ShuffleOp: _shuffle,
    vector.CreateMaskOp: _create_mask,
    vector.BitcastOp: _bitcast,
}
