"""Helper functions of vectors: an expression on whole vectors for compilers with vector types, else code for each
lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math, vector
from xdsl.ir import Operation

from landbridge.codegen.c.scalar import integer_comparison
from landbridge.codegen.c.types import CType, lane
from landbridge.codegen.c.unit import CUnit
from landbridge.codegen.printing import predicate


def helper(
    name: str,
    kinds: Sequence[CType],
    result: CType,
    rule: Callable[[Sequence[str]], str],
    native: str | None,
    arguments: str = "",
) -> str:
    """Returns the definition of ``name``: ``rule`` on each lane, or the expression ``native`` on whole vectors ``a b
    c``.

    ``arguments`` is the parameter list, if it is not ``kinds`` by value.
    """
    params = "abc"[: len(kinds)]
    arguments = arguments or ", ".join(f"{k.text} {p}" for k, p in zip(kinds, params, strict=True))
    texts = [lane(k, p, "i") if k.lanes else p for k, p in zip(kinds, params, strict=True)]
    head = f"LB_INLINE {result.text} {name}({arguments}) {{"
    slow = [
        f"  {result.text} r;",
        f"  for (int i = 0; i < {result.lanes}; ++i) {lane(result, 'r', 'i')} = {rule(texts)};",
        "  return r;",
    ]
    if native is None:
        return "\n".join([head, *slow, "}"])
    return "\n".join(["#if LB_VECTOR_TYPES", head, f"  return {native};", "}", "#else", head, *slow, "}", "#endif"])


_INFIX: dict[type[Operation], str] = {
    arith.AddfOp: "a + b",
    arith.SubfOp: "a - b",
    arith.MulfOp: "a * b",
    arith.DivfOp: "a / b",
    arith.NegfOp: "-a",
    # Contracted to one instruction where the processor has one.
    math.FmaOp: "a * b + c",
    vector.FMAOp: "a * b + c",
    arith.AddiOp: "a + b",
    arith.SubiOp: "a - b",
    arith.MuliOp: "a * b",
    arith.AndIOp: "a & b",
    arith.OrIOp: "a | b",
    arith.XOrIOp: "a ^ b",
}
_BITWISE = (arith.AndIOp, arith.OrIOp, arith.XOrIOp)
_COMPARE = {
    "oeq": "a == b",
    "ogt": "a > b",
    "oge": "a >= b",
    "olt": "a < b",
    "ole": "a <= b",
    "one": "(a < b) | (a > b)",
    "ord": "(a == a) & (b == b)",
    "ueq": "~((a < b) | (a > b))",
    "une": "a != b",
    "ugt": "~(a <= b)",
    "uge": "~(a < b)",
    "ult": "~(a >= b)",
    "ule": "~(a > b)",
    "uno": "(a != a) | (b != b)",
}
#: The comparison by which the first operand is the result, and how the bits of equal operands (such as zeros) are
#: combined.
_EXTREMA: dict[type[Operation], tuple[str, str]] = {arith.MaximumfOp: (">", "&"), arith.MinimumfOp: ("<", "|")}


def truths(mask: str, result: CType) -> str:
    """Returns the lanes, 0 or -1, of a comparison of whole vectors as lanes of i1."""
    return f"__builtin_convertvector({mask}, {result.text}) & 1"


def native(unit: CUnit, op: Operation, kinds: Sequence[CType], result: CType) -> str | None:
    """Returns ``op`` as an expression on whole vectors ``a b c``; None when there is none."""
    if not result.is_native or any(k.is_narrow for k in (*kinds, result)):
        return None
    infix = _INFIX.get(type(op))
    if infix is not None:
        return infix if result.element != "i1" or isinstance(op, _BITWISE) else None
    if isinstance(op, arith.CmpfOp) and predicate(op) in _COMPARE:
        return truths(_COMPARE[predicate(op)], result)
    if isinstance(op, arith.CmpiOp):
        sign, symbol = integer_comparison(op)
        # An i1 has no sign of its own: lane by lane it is given one.
        source = unit.use(kinds[0].of(f"{'s' if sign == 's' else 'i'}{kinds[0].bits}")).text
        return None if kinds[0].element == "i1" else truths(f"({source})a {symbol} ({source})b", result)
    if isinstance(op, arith.SelectOp) and kinds[0].lanes:
        bits = unit.use(result.of(f"i{result.bits}")).text
        mask = f"(-__builtin_convertvector(a, {bits}))"
        return f"({result.text})(({mask} & ({bits})b) | (~{mask} & ({bits})c))"
    if type(op) in _EXTREMA:
        wins, both = _EXTREMA[type(op)]
        bits = unit.use(result.of(f"i{result.bits}")).text
        first, equal, x, y = f"({bits})((a {wins} b) | (a != a))", f"({bits})(a == b)", f"({bits})a", f"({bits})b"
        return f"({result.text})(({first} & {x}) | ({equal} & ({x} {both} {y})) | (~({first} | {equal}) & {y}))"
    if isinstance(op, arith.SIToFPOp | arith.ExtSIOp) and kinds[0].element != "i1":
        # From the signed form of the same bits.
        source = unit.use(kinds[0].of(f"s{kinds[0].bits}")).text
        return f"__builtin_convertvector(({source})a, {result.text})"
    if isinstance(op, arith.UIToFPOp | arith.ExtUIOp | arith.TruncIOp | arith.ExtFOp | arith.TruncFOp):
        masked = " & 1" if result.element == "i1" else ""
        return f"__builtin_convertvector(a, {result.text}){masked}"
    return None
