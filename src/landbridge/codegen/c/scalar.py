"""C expressions of scalar operations, which define the meaning of each operation of ``arith`` and ``math``.

A rule takes the CTypes of the operands, the CType of the result, and the operands' C text; vectors apply the same rule
lane by lane. 16-bit floats never reach a rule of float arithmetic: they are widened around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math
from xdsl.ir import Operation

from landbridge.codegen.c.types import CType
from landbridge.codegen.printing import FUNCTIONS, INSTRUCTIONS, predicate
from landbridge.ir.prim_ops import ByteDotOp, RemFOp

#: ``rule(operand kinds, result kind, operand texts) -> expression``.
Rule = Callable[[Sequence[CType], CType, Sequence[str]], str]


def signed(kind: CType, text: str) -> str:
    """Returns ``text`` as a signed integer."""
    if kind.element == "i1":  # its one bit is its sign
        return f"-(int8_t){text}"
    return text if kind.element == "index" else f"(int{kind.bits}_t){text}"


def unsigned(kind: CType, text: str) -> str:
    """Returns ``text`` as an unsigned integer."""
    return f"(lb_unsigned_index){text}" if kind.element == "index" else text


def _wrapping(symbol: str) -> Rule:
    """Returns the rule of addition and similar operations: they wrap, except index arithmetic, which addresses
    memory.
    """

    def rule(kinds: Sequence[CType], result: CType, x: Sequence[str]) -> str:
        if result.element == "index":
            return f"({x[0]} {symbol} {x[1]})"
        if result.element == "i1":
            return f"(({x[0]} {symbol} {x[1]}) & 1)"
        # Narrow operands would be promoted to int, where a product can overflow.
        wide = "(uint32_t)" if result.bits < 32 else ""
        return f"({result.scalar})({wide}{x[0]} {symbol} {x[1]})"

    return rule


def _shift_left(kinds: Sequence[CType], result: CType, x: Sequence[str]) -> str:
    wide = "uint64_t" if result.bits == 64 else "uint32_t"
    return f"({result.scalar})(({wide}){x[0]} << {x[1]})"


def _signed(symbol: str) -> Rule:
    return lambda k, r, x: f"({r.scalar})({signed(k[0], x[0])} {symbol} {signed(k[1], x[1])})"


def _unsigned(symbol: str) -> Rule:
    return lambda k, r, x: f"({r.scalar})({unsigned(k[0], x[0])} {symbol} {unsigned(k[1], x[1])})"


def _shift_right(cast: Callable[[CType, str], str]) -> Rule:
    return lambda k, r, x: f"({r.scalar})({cast(k[0], x[0])} >> {x[1]})"


def _rounded_division(function: str, cast: Callable[[CType, str], str]) -> Rule:
    return lambda k, r, x: f"({r.scalar}){function}({cast(k[0], x[0])}, {cast(k[1], x[1])})"


def _extremum(symbol: str, cast: Callable[[CType, str], str]) -> Rule:
    return lambda k, r, x: f"({cast(k[0], x[0])} {symbol} {cast(k[1], x[1])} ? {x[0]} : {x[1]})"


def _infix(symbol: str) -> Rule:
    return lambda k, r, x: f"({x[0]} {symbol} {x[1]})"


def _function(name: str) -> Rule:
    """Returns the rule of a function of the C library, whose f32 form has the suffix f."""
    return lambda k, r, x: f"{name}{'f' if r.element == 'f32' else ''}({', '.join(x)})"


def _library(name: str) -> Rule:
    """Returns the same for a function that may read bits of its operands, which are passed as arithmetic reads them."""
    call = _function(name)
    return lambda k, r, x: call(k, r, [f"lb_as_read_{r.element}({text})" for text in x])


def _of_kind(name: str) -> Rule:
    """Returns the rule of a function of the prelude, named after the operand's element."""
    return lambda k, r, x: f"{name}_{k[0].element}({', '.join(x)})"


def _select(kinds: Sequence[CType], result: CType, x: Sequence[str]) -> str:
    return f"({x[0]} ? {x[1]} : {x[2]})"


def _to_integer(sign: str) -> Rule:
    """Returns the rule of float to integer, clamped to the range; NaN gives 0. f32 is exact in f64."""
    return lambda k, r, x: f"({r.scalar})lb_to_{sign}{r.bits}({x[0]})"


def _from_signed(kinds: Sequence[CType], result: CType, x: Sequence[str]) -> str:
    return f"({result.scalar}){signed(kinds[0], x[0])}"


def _cast(kinds: Sequence[CType], result: CType, x: Sequence[str]) -> str:
    return f"(({result.scalar}){x[0]})"


def _truncate(kinds: Sequence[CType], result: CType, x: Sequence[str]) -> str:
    return f"({x[0]} & 1)" if result.element == "i1" else _cast(kinds, result, x)


def _index_cast(kinds: Sequence[CType], result: CType, x: Sequence[str]) -> str:
    return f"({result.scalar}){signed(kinds[0], x[0])}"


def _bitcast(kinds: Sequence[CType], result: CType, x: Sequence[str]) -> str:
    before, after = kinds[0], result
    if before.scalar == after.scalar:
        return x[0]
    return f"lb_bits_{before.element}_{after.element}({x[0]})"


def convert_float(source: CType, result: CType, text: str) -> str:
    """Returns a float of one width converted to another, rounded once."""
    if source.element == result.element:
        return text
    if source.is_narrow or result.is_narrow:
        if source.is_narrow and result.element != "f32":
            wide = convert_float(source, CType("f32"), text)
            return convert_float(CType("f32"), result, wide)
        return f"lb_{source.element}_to_{result.element}({text})"
    return f"({result.scalar}){text}"


def _convert_float(kinds: Sequence[CType], result: CType, x: Sequence[str]) -> str:
    return convert_float(kinds[0], result, x[0])


#: Ordered comparisons are false when an operand is NaN, unordered ones true.
_COMPARE_FLOAT = {
    "false": "0",
    "oeq": "({0} == {1})",
    "ogt": "({0} > {1})",
    "oge": "({0} >= {1})",
    "olt": "({0} < {1})",
    "ole": "({0} <= {1})",
    "one": "({0} < {1} || {0} > {1})",
    "ord": "({0} == {0} && {1} == {1})",
    "ueq": "!({0} < {1} || {0} > {1})",
    "ugt": "!({0} <= {1})",
    "uge": "!({0} < {1})",
    "ult": "!({0} >= {1})",
    "ule": "!({0} > {1})",
    "une": "({0} != {1})",
    "uno": "({0} != {0} || {1} != {1})",
    "true": "1",
}
#: The operator of an integer predicate, without its sign.
_COMPARE_INTEGER = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def integer_comparison(op: Operation) -> tuple[str, str]:
    """Returns the sign, ``s`` or ``u``, and the C operator of ``arith.cmpi``."""
    name = predicate(op)
    return ("u", _COMPARE_INTEGER[name]) if name in ("eq", "ne") else (name[0], _COMPARE_INTEGER[name[1:]])


def rule_of(op: Operation) -> Rule:
    """Returns the rule of an operation in ``RULES`` or of a comparison."""
    if isinstance(op, arith.CmpfOp):
        form = _COMPARE_FLOAT[predicate(op)]
        return lambda k, r, x: form.format(*x)
    if isinstance(op, arith.CmpiOp):
        sign, symbol = integer_comparison(op)
        cast = signed if sign == "s" else unsigned
        return lambda k, r, x: f"({cast(k[0], x[0])} {symbol} {cast(k[1], x[1])})"
    return RULES[type(op)]


def expression(op: Operation, kinds: Sequence[CType], result: CType, texts: Sequence[str]) -> str:
    """Returns the C text of ``op`` on scalars, or on one lane of vectors."""
    rule = rule_of(op)
    if type(op) not in _RAW and any(k.is_narrow for k in (*kinds, result)):
        single = CType("f32")
        texts = [convert_float(k, single, x) if k.is_narrow else x for k, x in zip(kinds, texts, strict=True)]
        kinds = [single if k.is_narrow else k for k in kinds]
        if not result.is_narrow:
            return rule(kinds, result, texts)
        return convert_float(single, result, f"({rule(kinds, single, texts)})")
    return rule(kinds, result, texts)


RULES: dict[type[Operation], Rule] = {
    arith.AddiOp: _wrapping("+"),
    arith.SubiOp: _wrapping("-"),
    arith.MuliOp: _wrapping("*"),
    arith.ShLIOp: _shift_left,
    arith.DivSIOp: _signed("/"),
    arith.DivUIOp: _unsigned("/"),
    arith.RemSIOp: _signed("%"),
    arith.RemUIOp: _unsigned("%"),
    arith.FloorDivSIOp: _rounded_division("lb_floordiv", signed),
    arith.CeilDivSIOp: _rounded_division("lb_ceildiv", signed),
    arith.CeilDivUIOp: _rounded_division("lb_ceildiv_u", unsigned),
    arith.MinSIOp: _extremum("<", signed),
    arith.MaxSIOp: _extremum(">", signed),
    arith.MinUIOp: _extremum("<", unsigned),
    arith.MaxUIOp: _extremum(">", unsigned),
    arith.AndIOp: _infix("&"),
    arith.OrIOp: _infix("|"),
    arith.XOrIOp: _infix("^"),
    arith.ShRUIOp: _shift_right(unsigned),
    arith.ShRSIOp: _shift_right(signed),
    arith.SelectOp: _select,
    arith.AddfOp: _infix("+"),
    arith.SubfOp: _infix("-"),
    arith.MulfOp: _infix("*"),
    arith.DivfOp: _infix("/"),
    RemFOp: _library("fmod"),
    arith.NegfOp: lambda k, r, x: f"(-{x[0]})",
    arith.MaximumfOp: _of_kind("lb_maximum"),
    arith.MinimumfOp: _of_kind("lb_minimum"),
    arith.MaxnumfOp: _function("fmax"),
    arith.MinnumfOp: _function("fmin"),
    arith.BitcastOp: _bitcast,
    arith.IndexCastOp: _index_cast,
    arith.FPToSIOp: _to_integer("s"),
    arith.FPToUIOp: _to_integer("u"),
    arith.SIToFPOp: _from_signed,
    arith.UIToFPOp: lambda k, r, x: f"({r.scalar}){unsigned(k[0], x[0])}",
    arith.ExtFOp: _convert_float,
    arith.TruncFOp: _convert_float,
    arith.TruncIOp: _truncate,
    arith.ExtUIOp: _cast,
    arith.ExtSIOp: _from_signed,
    **{op: _function(name) for op, name in INSTRUCTIONS.items()},
    **{op: _library(name) for op, name in FUNCTIONS.items()},
    math.AbsIOp: lambda k, r, x: f"({signed(k[0], x[0])} < 0 ? ({r.scalar})(0 - {x[0]}) : {x[0]})",
    math.CountLeadingZerosOp: lambda k, r, x: f"({r.scalar})lb_ctlz({unsigned(k[0], x[0])}, {r.bits})",
    math.CountTrailingZerosOp: lambda k, r, x: f"({r.scalar})lb_cttz({unsigned(k[0], x[0])}, {r.bits})",
    ByteDotOp: lambda k, r, x: f"lb_byte_dot({x[0]}, {x[1]})",
    math.CtPopOp: lambda k, r, x: f"({r.scalar})lb_ctpop({unsigned(k[0], x[0])})",
    math.FmaOp: _function("fma"),
    math.RsqrtOp: lambda k, r, x: f"(1 / sqrt{'f' if r.element == 'f32' else ''}({x[0]}))",
    math.FPowIOp: lambda k, r, x: _library("pow")(k, r, [x[0], f"({r.scalar}){signed(k[1], x[1])}"]),
}

#: Operations on the bits of a float, or between floats: 16-bit ones are given to their rules as they are.
_RAW = frozenset({arith.SelectOp, arith.BitcastOp, arith.ExtFOp, arith.TruncFOp})
