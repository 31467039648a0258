"""C of the ``arith`` and ``math`` dialects: scalars by their rule, vectors by infix operators or lane by lane."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import Operation

from landbridge.codegen.c import lanes
from landbridge.codegen.c.emitter import CEmitter, Printer
from landbridge.codegen.c.scalar import RULES, expression, signed
from landbridge.codegen.c.types import CType
from landbridge.codegen.c.unit import CUnit
from landbridge.codegen.printing import constant_values, predicate
from landbridge.errors import CodegenError


def _constant(e: CEmitter, op: Operation) -> None:
    result = op.results[0]
    kind, values = e.kind(result), constant_values(op, e.form)
    texts = [e.unit.literal(v, kind.element) for v in values]
    if not kind.lanes:
        e.names[result] = texts[0]
        return
    e.names[result] = e.unit.vector(kind, texts)
    if kind.element == "i1":
        retained = [bool(v) for v in values] * (kind.lanes // len(values))
        if all(retained[: sum(retained)]):
            e.retained[result] = str(sum(retained))


def _elementwise(e: CEmitter, op: Operation) -> None:
    result = op.results[0]
    kinds, kind = [e.kind(o) for o in op.operands], e.kind(result)
    texts = [e.names[o] for o in op.operands]
    if not kind.lanes:
        e.set(result, expression(op, kinds, kind, texts))
        return
    name = lanewise(e.unit, op, kinds, kind, lanes.native(e.unit, op, kinds, kind))
    e.set(result, f"{name}({', '.join(texts)})")


def lanewise(unit: CUnit, op: Operation, kinds: Sequence[CType], kind: CType, native: str | None = None) -> str:
    """Defines a helper for ``op`` on vectors, unless it is defined already, and returns its name.

    It evaluates the expression ``native`` on whole vectors; without one, the rule of scalars on each lane. ``kinds``
    are the types of the operands, ``kind`` that of the result.
    """
    name = _helper_name(op, kinds, kind)
    return unit.define(name, lambda: lanes.helper(name, kinds, kind, lambda x: expression(op, kinds, kind, x), native))


def _helper_name(op: Operation, kinds: Sequence[CType], kind: CType) -> str:
    """Returns the name of the helper for ``op`` on these types: ``lb_OPERATION[_PREDICATE]_TYPES``."""
    stem = op.name.split(".")[1]
    if isinstance(op, arith.CmpfOp | arith.CmpiOp):
        stem += f"_{predicate(op)}"
    types = [k.text for k in dict.fromkeys([*kinds, kind])]
    return "_".join(["lb", stem, *types])


def _extended_add(e: CEmitter, op: Operation) -> None:
    a, b = op.operands
    kind = e.kind(a)
    if kind.lanes:
        raise CodegenError(f"{op.name} on vectors has no C form; lower it to scalars first")
    e.set(op.results[0], f"({kind.scalar})({e.names[a]} + {e.names[b]})")
    e.set(op.results[1], f"({e.names[op.results[0]]} < {e.names[a]})")


def _extended_multiply(sign: str) -> Printer:
    """Returns a printer of the low and the high half of a product; ``sign`` is ``s`` for signed integers, ``u`` for
    unsigned ones.
    """

    def emit(e: CEmitter, op: Operation) -> None:
        kind = e.kind(op.operands[0])
        if kind.lanes:
            raise CodegenError(f"{op.name} on vectors has no C form; lower it to scalars first")
        x, y = (e.names[o] for o in op.operands)
        if kind.bits == 64:
            e.set(op.results[0], f"({kind.scalar})((uint64_t){x} * (uint64_t){y})")
            e.set(op.results[1], f"({kind.scalar})lb_high_{sign}64((uint64_t){x}, (uint64_t){y})")
            return
        wide = "int64_t" if sign == "s" else "uint64_t"
        if sign == "s":
            x, y = signed(kind, x), signed(kind, y)
        product = e.fresh()
        e.line(f"const {wide} {product} = ({wide})({x}) * ({y});")
        e.set(op.results[0], f"({kind.scalar}){product}")
        e.set(op.results[1], f"({kind.scalar})({product} >> {kind.bits})")

    return emit


PRINTERS: dict[type[Operation], Printer] = {
    arith.ConstantOp: _constant,
    arith.CmpiOp: _elementwise,
    arith.CmpfOp: _elementwise,
    arith.AddUIExtendedOp: _extended_add,
    arith.MulUIExtendedOp: _extended_multiply("u"),
    arith.MulSIExtendedOp: _extended_multiply("s"),
    **dict.fromkeys(RULES, _elementwise),
}
