"""OpenCL C of the ``arith`` and ``math`` dialects: scalars by the rules of the C family, vectors whole."""

from __future__ import annotations

from xdsl.dialects import arith, math, vector
from xdsl.ir import Operation

from landbridge.codegen.c import arith as c_arith
from landbridge.codegen.c.arith import lanewise
from landbridge.codegen.c.emitter import CEmitter, Printer
from landbridge.codegen.c.scalar import RULES, expression
from landbridge.codegen.contraction import fused_product, is_fused
from landbridge.codegen.opencl.lanes import whole
from landbridge.codegen.opencl.terms import function
from landbridge.codegen.printing import FUNCTIONS
from landbridge.ir.prim_ops import RemFOp

#: Functions that are written out for f32; 16-bit floats call them by the names that C gives them.
EXPANDED: dict[type[Operation], str] = {**FUNCTIONS, math.FPowIOp: "pow", RemFOp: "fmod"}


def _elementwise(e: CEmitter, op: Operation) -> None:
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
    name = EXPANDED.get(type(op))
    if name is not None and kind.element != "f64":
        # OpenCL guarantees only 16 ulp for its own, and drivers have been worse.
        by_lanes = kind.is_narrow or isinstance(op, math.FPowIOp)
        symbol = function(e.unit, name, 0 if by_lanes else kind.lanes)
        if not by_lanes:
            e.set(result, f"{symbol}({', '.join(texts)})")
            return
    if not kind.lanes:
        e.set(result, expression(op, kinds, kind, texts))
        return
    text = whole(op, kinds, kind, texts)
    e.set(result, text or f"{lanewise(e.unit, op, kinds, kind)}({', '.join(texts)})")


PRINTERS: dict[type[Operation], Printer] = {
    **c_arith.PRINTERS,
    arith.CmpiOp: _elementwise,
    arith.CmpfOp: _elementwise,
    vector.FMAOp: _elementwise,
    **dict.fromkeys(RULES, _elementwise),
}
