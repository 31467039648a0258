"""Operations on whole vectors as OpenCL C expressions; others are computed lane by lane, by the rules of the C family.

Comparisons of vectors give lanes of 0 or -1 as wide as what is compared, ``select`` reads the highest bit of each
(OpenCL C 3.0 specification, sections 6.5.4 and 6.15.6).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math, vector
from xdsl.ir import Operation

from landbridge.codegen.c.scalar import integer_comparison
from landbridge.codegen.c.types import CType
from landbridge.codegen.opencl.unit import ELEMENTS
from landbridge.codegen.printing import FUNCTIONS, INSTRUCTIONS, predicate

_INFIX: dict[type[Operation], str] = {
    arith.AddfOp: "{0} + {1}",
    arith.SubfOp: "{0} - {1}",
    arith.MulfOp: "{0} * {1}",
    arith.DivfOp: "{0} / {1}",
    arith.NegfOp: "-{0}",
    math.FmaOp: "fma({0}, {1}, {2})",
    vector.FMAOp: "fma({0}, {1}, {2})",
    arith.AddiOp: "{0} + {1}",
    arith.SubiOp: "{0} - {1}",
    arith.MuliOp: "{0} * {1}",
    arith.AndIOp: "{0} & {1}",
    arith.OrIOp: "{0} | {1}",
    arith.XOrIOp: "{0} ^ {1}",
    arith.MaxUIOp: "max({0}, {1})",
    arith.MinUIOp: "min({0}, {1})",
}
_BITWISE = (arith.AndIOp, arith.OrIOp, arith.XOrIOp)
_SIGNED: dict[type[Operation], str] = {arith.MaxSIOp: "max({0}, {1})", arith.MinSIOp: "min({0}, {1})"}
_COMPARE = {
    "oeq": "{0} == {1}",
    "ogt": "{0} > {1}",
    "oge": "{0} >= {1}",
    "olt": "{0} < {1}",
    "ole": "{0} <= {1}",
    "one": "islessgreater({0}, {1})",
    "ord": "isordered({0}, {1})",
    "une": "{0} != {1}",
    "uno": "isunordered({0}, {1})",
}
#: NaN wins, then the larger or the smaller; which zero is open, as the lowering says with its nsz.
_EXTREMA: dict[type[Operation], str] = {arith.MaximumfOp: "<=", arith.MinimumfOp: ">="}
#: Functions that go lane by lane: in PoCL 3.1's pow of vectors of f64, a base of 0 in one lane spoils the others.
_BY_LANES = (math.PowFOp, math.Atan2Op, math.CbrtOp)
_CALLS = {op: name for op, name in (FUNCTIONS | INSTRUCTIONS).items() if op not in _BY_LANES} | {
    math.RsqrtOp: "1 / sqrt"
}


def truths(mask: str, result: CType) -> str:
    """Returns a comparison of whole vectors as lanes of i1."""
    return f"convert_uchar{result.lanes}({mask}) & (uchar)1"


def signed(kind: CType, text: str) -> str:
    """Returns a vector of integers with a sign."""
    return f"as_{ELEMENTS[f's{kind.bits}']}{kind.lanes}({text})"


def whole(op: Operation, kinds: Sequence[CType], result: CType, x: Sequence[str]) -> str | None:
    """Returns ``op`` on whole vectors ``x``; None when there is no expression for it."""
    if any(k.is_narrow for k in (*kinds, result)) or not all(k.lanes for k in kinds):
        return None
    form = _INFIX.get(type(op))
    if form is not None:
        return f"({form.format(*x)})" if result.element != "i1" or isinstance(op, _BITWISE) else None
    if type(op) in _CALLS:
        return f"({_CALLS[type(op)]}({', '.join(x)}))"
    if isinstance(op, arith.CmpfOp):
        compare = _COMPARE.get(predicate(op))
        return truths(compare.format(*x), result) if compare is not None else None
    if isinstance(op, arith.CmpiOp):
        sign, symbol = integer_comparison(op)
        a, b = (signed(k, t) for k, t in zip(kinds, x, strict=True)) if sign == "s" else x
        return None if kinds[0].element == "i1" else truths(f"{a} {symbol} {b}", result)
    if isinstance(op, arith.SelectOp):
        return _select(kinds[0], result, x)
    if type(op) in _EXTREMA:
        a, b = x
        return f"select(select({a}, {b}, {a} {_EXTREMA[type(op)]} {b}), {b}, isnan({b}))"
    if type(op) in _SIGNED and result.element != "i1":
        a, b = (signed(k, t) for k, t in zip(kinds, x, strict=True))
        return f"as_{ELEMENTS[result.element]}{result.lanes}({_SIGNED[type(op)].format(a, b)})"
    return _conversion(op, kinds, result, x)


def _select(condition: CType, result: CType, x: Sequence[str]) -> str:
    mask = f"(convert_{ELEMENTS[f's{result.bits}']}{result.lanes}({x[0]}) != ({ELEMENTS[f's{result.bits}']})0)"
    return f"select({x[2]}, {x[1]}, {mask})"


def _conversion(op: Operation, kinds: Sequence[CType], result: CType, x: Sequence[str]) -> str | None:
    name = f"convert_{ELEMENTS[result.element]}{result.lanes}"
    if isinstance(op, arith.UIToFPOp | arith.ExtUIOp | arith.TruncIOp | arith.ExtFOp | arith.TruncFOp):
        return f"{name}({x[0]}){' & (uchar)1' if result.element == 'i1' else ''}"
    if isinstance(op, arith.SIToFPOp) and kinds[0].element != "i1":
        return f"{name}({signed(kinds[0], x[0])})"
    if isinstance(op, arith.FPToUIOp):
        return f"{name}_sat({x[0]})"
    if isinstance(op, arith.FPToSIOp):
        sign = f"{ELEMENTS[f's{result.bits}']}{result.lanes}"
        return f"as_{ELEMENTS[result.element]}{result.lanes}(convert_{sign}_sat({x[0]}))"
    return None
