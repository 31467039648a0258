"""OpenCL C of the ``arith`` and ``math`` dialects: scalars by the rules of the C family, vectors whole."""

from __future__ import annotations

from typing import cast

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Operation

from landbridge.codegen.c import arith as c_arith
from landbridge.codegen.c.arith import helper_name
from landbridge.codegen.c.emitter import Emitter, Printer
from landbridge.codegen.c.scalar import RULES, expression
from landbridge.codegen.c.types import literal
from landbridge.codegen.contraction import fused_product, is_fused
from landbridge.codegen.opencl.lanes import helper, whole
from landbridge.codegen.opencl.terms import function
from landbridge.codegen.opencl.unit import OpenCLUnit
from landbridge.errors import CodegenError
from landbridge.ir.prim_ops import RemFOp


def opencl_literal(value: float | int, element: str) -> str:
    """A constant; OpenCL C has no long long."""
    text = literal(value, element)
    return text.replace("ull", "ul").replace("LL", "L") if element in ("i64", "index") else text


#: Functions that are written out for f32; 16-bit floats call them by the names that C gives them.
EXPANDED = {
    math.AcosOp: "acos", math.AcoshOp: "acosh", math.AsinOp: "asin", math.AsinhOp: "asinh", math.AtanOp: "atan",
    math.Atan2Op: "atan2", math.AtanhOp: "atanh", math.CbrtOp: "cbrt", math.CosOp: "cos", math.CoshOp: "cosh",
    math.ErfOp: "erf", math.ExpOp: "exp", math.Exp2Op: "exp2", math.ExpM1Op: "expm1", math.LogOp: "log",
    math.Log10Op: "log10", math.Log1pOp: "log1p", math.Log2Op: "log2", math.PowFOp: "pow", math.FPowIOp: "pow",
    RemFOp: "fmod", math.SinOp: "sin", math.SinhOp: "sinh", math.TanOp: "tan", math.TanhOp: "tanh",
}  # fmt: skip


def _constant(e: Emitter, op: Operation) -> None:
    value, result = op.properties["value"], op.results[0]
    kind = e.kind(result)
    if isinstance(value, IntegerAttr | FloatAttr):
        e.names[result] = opencl_literal(value.value.data, kind.element)
    elif isinstance(value, DenseIntOrFPElementsAttr):
        values = value.get_values()
        texts = [opencl_literal(v, kind.element) for v in (values[:1] if value.is_splat() else values)]
        e.names[result] = f"(({kind.text})({', '.join(texts)}))"
    else:
        raise CodegenError(f"constant {value} has no OpenCL C form; legal: integers, floats and dense vectors of them")


def _elementwise(e: Emitter, op: Operation) -> None:
    result = op.results[0]
    if is_fused(op):
        return
    kinds, kind = [e.kind(o) for o in op.operands], e.kind(result)
    product = fused_product(op)
    if product is not None and not kind.is_narrow:
        a, b = (e.names[o] for o in product.operands)
        other = next(o for o in op.operands if o.owner is not product)
        e.set(result, f"lb_mad({a}, {b}, {e.names[other]})")
        return
    texts = [e.names[o] for o in op.operands]
    unit = cast(OpenCLUnit, e.unit)
    name = EXPANDED.get(type(op))
    if name is not None and kind.element != "f64":
        # What OpenCL promises of its own is up to 16 ulp, and drivers have kept less.
        by_lanes = kind.is_narrow or isinstance(op, math.FPowIOp)
        symbol = function(unit, name, 0 if by_lanes else kind.lanes)
        if not by_lanes:
            e.set(result, f"{symbol}({', '.join(texts)})")
            return
    if not kind.lanes:
        e.set(result, expression(op, kinds, kind, texts))
        return
    text = whole(op, kinds, kind, texts)
    if text is None:
        text = f"{helper(unit, helper_name(op, kinds, kind), op, kinds, kind)}({', '.join(texts)})"
    e.set(result, text)


PRINTERS: dict[type[Operation], Printer] = {
    **c_arith.PRINTERS,
    arith.ConstantOp: _constant,
    arith.CmpiOp: _elementwise,
    arith.CmpfOp: _elementwise,
    vector.FMAOp: _elementwise,
    **dict.fromkeys(RULES, _elementwise),
}
