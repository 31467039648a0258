"""Rules that compute the scalar operations of PrimFunc bodies on arrays.

Integers are signless in the IR and held as signed; the names of operations that read them as unsigned say so.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation

from landbridge.dtypes import numpy_dtype
from landbridge.errors import UnsupportedOperatorError
from landbridge.interpreter.floats import function, fused
from landbridge.ir.conversions import converted
from landbridge.ir.prim_ops import ByteDotOp, RemFOp
from landbridge.ir.types import dtype_of

Array: TypeAlias = np.ndarray[Any, Any]
#: ``rule(*operands) -> result``, on arrays that broadcast.
Rule: TypeAlias = Callable[..., Array]

_SINGLE = np.dtype(np.float32)


def scalar_dtype(ty: Attribute) -> np.dtype[Any]:
    """Returns the numpy dtype for values of the scalar type ``ty``."""
    if isinstance(ty, IndexType):
        return np.dtype(np.int64)
    if isinstance(ty, IntegerType) and ty.width.data == 1:
        return np.dtype(bool)
    return numpy_dtype(dtype_of(ty).removeprefix("u"))


def signless(array: Array) -> Array:
    """Returns ``array`` as the IR's signless integers: the same memory, with unsigned elements seen as signed ones."""
    return array.view(array.dtype.str.replace("u", "i")) if array.dtype.kind == "u" else array


def number_of(attr: Attribute, kind: np.dtype[Any]) -> Any:
    """Returns the numpy scalar of ``kind`` that a constant's attribute holds."""
    assert isinstance(attr, FloatAttr | IntegerAttr)
    with np.errstate(over="ignore"):
        return np.asarray(attr.value.data).astype(kind)[()]


def _unsigned(a: Array) -> Array:
    a = np.asarray(a)
    return a if a.dtype.kind == "b" else a.view(a.dtype.str.replace("i", "u"))


def _signed(a: Array) -> Array:
    a = np.asarray(a)
    return a if a.dtype.kind == "b" else a.view(a.dtype.str.replace("u", "i"))


def _without_sign(rule: Rule) -> Rule:
    return lambda *operands: _signed(rule(*map(_unsigned, operands)))


def _floor_quotient(a: Array, b: Array) -> Array:
    return np.where(b == 0, 0, a // np.where(b == 0, 1, b)).astype(np.result_type(a))


def _quotient(a: Array, b: Array) -> Array:
    """Returns the quotient rounded towards zero; 0 where the divisor is 0, which kernels replace before."""
    q = _floor_quotient(a, b)
    return np.asarray(q + ((q * b != a) & ((a < 0) != (b < 0)) & (b != 0)), np.result_type(a))


def _remainder(a: Array, b: Array) -> Array:
    return np.asarray(a - _quotient(a, b) * b, np.result_type(a))


def _byte_dot(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    data = np.ascontiguousarray(a)[..., None].view(np.uint8).astype(np.int32)
    return np.asarray((data * np.ascontiguousarray(b)[..., None].view(np.int8)).sum(-1, dtype=np.int32))


def _reciprocal_root(a: Array) -> Array:
    kind = np.result_type(a)
    wide = np.asarray(a).astype(_SINGLE) if kind.itemsize == 2 else a
    return np.asarray(1 / np.sqrt(wide)).astype(kind, copy=False)


def _subtracted(a: Array, b: Array) -> Array:
    return a ^ b if np.result_type(a).kind == "b" else a - b


_RULES: dict[type[Operation], Rule] = {
    arith.AddfOp: np.add, arith.SubfOp: np.subtract, arith.MulfOp: np.multiply, arith.DivfOp: np.divide,
    arith.MaximumfOp: np.maximum, arith.MinimumfOp: np.minimum, arith.MaxnumfOp: np.fmax, arith.MinnumfOp: np.fmin,
    RemFOp: np.fmod, arith.NegfOp: np.negative,
    arith.AddiOp: np.add, arith.SubiOp: _subtracted, arith.MuliOp: np.multiply,
    arith.DivSIOp: _quotient, arith.DivUIOp: _without_sign(_floor_quotient), arith.FloorDivSIOp: _floor_quotient,
    arith.RemSIOp: _remainder, arith.RemUIOp: _without_sign(_remainder),
    arith.MaxSIOp: np.maximum, arith.MinSIOp: np.minimum,
    arith.MaxUIOp: _without_sign(np.maximum), arith.MinUIOp: _without_sign(np.minimum),
    arith.AndIOp: np.bitwise_and, arith.OrIOp: np.bitwise_or, arith.XOrIOp: np.bitwise_xor,
    arith.ShLIOp: np.left_shift, arith.ShRSIOp: np.right_shift, arith.ShRUIOp: _without_sign(np.right_shift),
    arith.SelectOp: np.where, ByteDotOp: _byte_dot,
    math.AbsFOp: np.abs, math.CeilOp: np.ceil, math.FloorOp: np.floor, math.TruncOp: np.trunc,
    math.RoundEvenOp: np.rint, math.SqrtOp: np.sqrt, math.CopySignOp: np.copysign, math.FmaOp: fused,
    math.RsqrtOp: _reciprocal_root,
    math.AcosOp: partial(function, "acos"), math.AcoshOp: partial(function, "acosh"),
    math.AsinOp: partial(function, "asin"), math.AsinhOp: partial(function, "asinh"),
    math.AtanOp: partial(function, "atan"), math.AtanhOp: partial(function, "atanh"),
    math.CosOp: partial(function, "cos"), math.CoshOp: partial(function, "cosh"),
    math.ErfOp: partial(function, "erf"), math.ExpOp: partial(function, "exp"),
    math.ExpM1Op: partial(function, "expm1"), math.LogOp: partial(function, "log"),
    math.Log1pOp: partial(function, "log1p"), math.PowFOp: partial(function, "pow"),
    math.SinOp: partial(function, "sin"), math.SinhOp: partial(function, "sinh"),
    math.TanOp: partial(function, "tan"), math.TanhOp: partial(function, "tanh"),
}  # fmt: skip

_ORDERED: dict[str, Rule] = {
    "eq": np.equal, "ne": lambda a, b: (a < b) | (a > b), "gt": np.greater, "ge": np.greater_equal, "lt": np.less,
    "le": np.less_equal,
}  # fmt: skip
_NEGATED = {"eq": "ne", "ne": "eq", "gt": "le", "ge": "lt", "lt": "ge", "le": "gt"}
_OF_INTEGERS: dict[str, Rule] = {**_ORDERED, "ne": np.not_equal}


def _float_comparison(name: str) -> Rule:
    """Returns the rule of a comparison: ordered ones are false where an operand is NaN, unordered ones true."""
    if name in ("ord", "uno"):
        return lambda a, b: ((a == a) & (b == b)) == (name == "ord")
    if name in ("true", "false"):
        return lambda a, b: np.broadcast_to(name == "true", np.broadcast_shapes(np.shape(a), np.shape(b)))
    if name[0] == "o":
        return _ORDERED[name[1:]]
    opposite = _ORDERED[_NEGATED[name[1:]]]
    return lambda a, b: np.logical_not(opposite(a, b))


def _integer_comparison(name: str) -> Rule:
    compare = _OF_INTEGERS[name[-2:]]
    return (lambda a, b: compare(_unsigned(a), _unsigned(b))) if name[0] == "u" else compare


def _read_signed(a: Array) -> Array:
    return -a.astype(np.int8) if a.dtype.kind == "b" else a


def _cast(op: Operation) -> Rule | None:
    kind = scalar_dtype(op.results[0].type)
    match op:
        case arith.ExtFOp() | arith.TruncFOp() | arith.IndexCastOp() | arith.FPToSIOp():
            return lambda a: converted(a, kind)
        case arith.TruncIOp():
            return (lambda a: (a & 1).astype(bool)) if kind.kind == "b" else lambda a: converted(a, kind)
        case arith.ExtUIOp() | arith.UIToFPOp():
            return lambda a: converted(_unsigned(a), kind)
        case arith.ExtSIOp() | arith.SIToFPOp():
            return lambda a: converted(_read_signed(np.asarray(a)), kind)
        case arith.FPToUIOp():
            unsigned = np.dtype(kind.str.replace("i", "u"))
            return lambda a: converted(a, unsigned).view(kind)
        case arith.BitcastOp():
            return lambda a: np.asarray(a).view(kind)
    return None


def rule_of(op: Operation) -> Rule:
    """Returns the rule that computes ``op`` from the arrays of its operands; raises UnsupportedOperatorError without a
    rule."""
    if isinstance(op, arith.CmpfOp):
        return _float_comparison(CMPF_COMPARISON_OPERATIONS[op.predicate.value.data])
    if isinstance(op, arith.CmpiOp):
        return _integer_comparison(CMPI_COMPARISON_OPERATIONS[op.predicate.value.data])
    rule = _RULES.get(type(op)) or _cast(op)
    if rule is None:
        raise UnsupportedOperatorError(f"{op.name} is not a scalar operation that is computed at compile time")
    return rule
