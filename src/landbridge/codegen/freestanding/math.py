"""Functions of f32 without a C library: each is straight-line code in the file, defined where a kernel uses it."""

from __future__ import annotations

from xdsl.dialects import arith as arith_ops
from xdsl.dialects import math
from xdsl.ir import Operation

from landbridge.codegen.c import arith
from landbridge.codegen.c.emitter import CEmitter, Printer
from landbridge.codegen.c.print_c import PRINTERS as C_PRINTERS
from landbridge.codegen.c.scalar import RULES
from landbridge.codegen.c.unit import CUnit
from landbridge.codegen.freestanding.lanes import PRINTERS as LANE_PRINTERS
from landbridge.codegen.freestanding.lanes import LaneEmitter, by_lane, constant
from landbridge.codegen.freestanding.terms import ScalarBody
from landbridge.codegen.printing import FUNCTIONS
from landbridge.errors import CodegenError
from landbridge.expansions.functions import EVERY, LARGE
from landbridge.ir.prim_ops import ByteDotOp, RemFOp

_OF_TWO = ("pow", "atan2", "fmod")


def function(unit: CUnit, name: str) -> str:
    """Returns the name of the C function of f32 that computes ``name``, which is defined in ``unit``.

    Kernels call it by the C library's name, which is a macro of the file.
    """
    symbol = f"lb_{name}_f32"

    def text() -> str:
        expansion = EVERY.get(name)
        if expansion is None:
            raise CodegenError(f"{name} of floats has no freestanding form; legal: {', '.join(sorted(EVERY))}")
        body = ScalarBody()
        parameters = ["a", "b"] if name in _OF_TWO else ["a"]
        arguments = [body.argument(p) for p in parameters]
        result = expansion(*arguments)
        if name in LARGE:
            beyond, continuation = LARGE[name]
            large = beyond(*arguments)
            body.leave(large, result)
            result = large.where(continuation(*arguments), result)
        head = f"LB_NOINLINE float {symbol}({', '.join(f'float {p}' for p in parameters)}) {{"
        lines = [head, *(f"  {line}" for line in body.lines), f"  return {result.name};", "}"]
        return "\n".join([*lines, f"#define {name}f {symbol}"])

    return unit.define(symbol, text)


def _function(name: str, printer: Printer) -> Printer:
    computed = by_lane(printer)

    def emit(e: CEmitter, op: Operation) -> None:
        function(e.unit, name)
        computed(e, op)

    return emit


def _added_product(op: Operation) -> Operation | None:
    """Returns the product of bytes that only ``op``, an addition of int32, reads; None where there is none."""
    for operand in op.operands:
        owner = operand.owner
        if isinstance(owner, ByteDotOp) and len(list(operand.uses)) == 1:
            return owner
    return None


def _byte_dot(e: CEmitter, op: Operation) -> None:
    """Prints a product of bytes, unless the addition that reads it does so."""
    (use, *others) = op.results[0].uses
    if others or not isinstance(use.operation, arith_ops.AddiOp) or _added_product(use.operation) is not op:
        by_lane(arith.PRINTERS[ByteDotOp])(e, op)


def _add(e: CEmitter, op: Operation) -> None:
    """Prints an addition of integers; one of a product of bytes is one call, which accumulates."""
    product = _added_product(op)
    if product is None:
        by_lane(arith.PRINTERS[arith_ops.AddiOp])(e, op)
        return
    assert isinstance(e, LaneEmitter)
    (total,) = (operand for operand in op.operands if operand.owner is not product)
    result = op.results[0]
    count = e.kind(result).lanes or 1
    parts = (e.texts(total, count), *(e.texts(operand, count) for operand in product.operands))
    texts = [f"lb_byte_dot_to({', '.join(each)})" for each in zip(*parts, strict=True)]
    if e.kind(result).lanes:
        e.set_lanes(result, texts)
    else:
        e.set(result, texts[0])


_NAMES: dict[type[Operation], str] = {**FUNCTIONS, RemFOp: "fmod", math.FPowIOp: "pow"}
PRINTERS: dict[type[Operation], Printer] = {
    **C_PRINTERS,
    **{op: by_lane(printer) for op, printer in arith.PRINTERS.items() if op in RULES},
    arith_ops.CmpiOp: by_lane(arith.PRINTERS[arith_ops.CmpiOp]),
    arith_ops.CmpfOp: by_lane(arith.PRINTERS[arith_ops.CmpfOp]),
    arith_ops.ConstantOp: constant(arith.PRINTERS[arith_ops.ConstantOp]),
    ByteDotOp: _byte_dot,
    arith_ops.AddiOp: _add,
    **LANE_PRINTERS,
    **{op: _function(name, arith.PRINTERS[op]) for op, name in _NAMES.items()},
}
