"""Scalar bodies of PrimFuncs in numpy: each SSA value is an array over the grid of loop indices.

Integers are signless, held as signed; operations that read them unsigned say so by their name (``divui``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import erf
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith, linalg, memref
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.ir.types import dtype_of

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Grid:
    """What a body sees: block arguments, memrefs for ``memref.load``, loop indices by dim."""

    scalars: dict[SSAValue, Array]
    buffers: dict[SSAValue, Array]
    indices: Sequence[Array]


def scalar_dtype(ty: Attribute) -> np.dtype[Any]:
    """The numpy dtype that values of a scalar type are held in."""
    if isinstance(ty, IndexType):
        return np.dtype(np.int64)
    if isinstance(ty, IntegerType) and ty.width.data == 1:
        return np.dtype(bool)
    name = dtype_of(ty)
    return numpy_dtype(name.removeprefix("u") if name.startswith("uint") else name)


def _unsigned(a: Array) -> Array:
    return a if a.dtype.kind == "b" else a.astype(a.dtype.str.replace("i", "u"))


def _signed(a: Array) -> Array:
    return a if a.dtype.kind == "b" else a.astype(a.dtype.str.replace("u", "i"))


def _trunc_div(a: Array, b: Array) -> Array:
    q = np.where(b == 0, 0, a // np.where(b == 0, 1, b))
    inexact = q * b != a
    return (q + (inexact & ((a < 0) != (b < 0)))).astype(a.dtype)


def _floor_div(a: Array, b: Array) -> Array:
    return np.where(b == 0, 0, a // np.where(b == 0, 1, b)).astype(a.dtype)


def _rem(a: Array, b: Array) -> Array:
    return (a - _trunc_div(a, b) * b).astype(a.dtype)


def _byte_dot(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    unsigned = np.ascontiguousarray(a)[..., None].view(np.uint8).astype(np.int32)
    return (unsigned * np.ascontiguousarray(b)[..., None].view(np.int8)).sum(-1, dtype=np.int32)


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.divf": np.divide,
    "arith.maximumf": np.maximum, "arith.minimumf": np.minimum, "arith.remf": np.fmod,
    "arith.maxnumf": np.fmax, "arith.minnumf": np.fmin,
    "arith.addi": np.add, "arith.muli": np.multiply,
    "arith.subi": lambda a, b: a ^ b if a.dtype.kind == "b" else a - b,
    "arith.divsi": _trunc_div, "arith.remsi": _rem, "arith.floordivsi": _floor_div,
    "arith.divui": lambda a, b: _signed(_floor_div(_unsigned(a), _unsigned(b))),
    "arith.remui": lambda a, b: _signed(_rem(_unsigned(a), _unsigned(b))),
    "arith.maxsi": np.maximum, "arith.minsi": np.minimum,
    "arith.maxui": lambda a, b: _signed(np.maximum(_unsigned(a), _unsigned(b))),
    "arith.minui": lambda a, b: _signed(np.minimum(_unsigned(a), _unsigned(b))),
    "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor,
    "arith.shli": np.left_shift, "arith.shrsi": np.right_shift,
    "arith.shrui": lambda a, b: _signed(np.right_shift(_unsigned(a), _unsigned(b))),
    "lb.byte_dot": _byte_dot,
    "math.powf": np.power, "math.atan2": np.arctan2, "math.copysign": np.copysign,
}  # fmt: skip

_UNARY: dict[str, Callable[[Array], Array]] = {
    "arith.negf": np.negative, "math.absf": np.abs, "math.acos": np.arccos, "math.acosh": np.arccosh,
    "math.asin": np.arcsin, "math.asinh": np.arcsinh, "math.atan": np.arctan, "math.atanh": np.arctanh,
    "math.ceil": np.ceil, "math.cos": np.cos, "math.cosh": np.cosh, "math.exp": np.exp, "math.expm1": np.expm1,
    "math.floor": np.floor,
    "math.erf": np.vectorize(erf, otypes=[np.float64]), "math.log": np.log, "math.log1p": np.log1p,
    "math.roundeven": np.rint, "math.rsqrt": lambda a: 1 / np.sqrt(a), "math.sin": np.sin,
    "math.sinh": np.sinh, "math.sqrt": np.sqrt, "math.tan": np.tan, "math.tanh": np.tanh,
    "math.trunc": np.trunc, "math.exp2": np.exp2, "math.log2": np.log2,
}  # fmt: skip

_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip
_CMPF = ["false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
         "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"]  # fmt: skip
_CMPI = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]


def _cast(op: Operation, a: Array) -> Array:
    target = scalar_dtype(op.results[0].type)
    match op.name:
        case "arith.extui" | "arith.uitofp":
            return _unsigned(a).astype(target)
        case "arith.extsi" | "arith.sitofp" if a.dtype.kind == "b":
            return (-a.astype(np.int8)).astype(target)
        case "arith.trunci" if target.kind == "b":
            return (a & 1).astype(bool)
        case "arith.fptoui":
            return a.astype(target.str.replace("i", "u")).astype(target)
        case _:
            return a.astype(target)


def _compare(op: arith.CmpfOp | arith.CmpiOp, a: Array, b: Array) -> Array:
    kind = op.predicate.value.data
    if isinstance(op, arith.CmpiOp):
        name = _CMPI[kind]
        if name[0] == "u":
            a, b = _unsigned(a), _unsigned(b)
        return _COMPARE[name[-2:]](a, b)
    name = _CMPF[kind]
    nan = np.isnan(a) | np.isnan(b)
    if name in ("ord", "uno"):
        return nan if name == "uno" else ~nan
    result = _COMPARE[name[1:]](a, b)
    return result | nan if name[0] == "u" else result & ~nan


def evaluate(body: Block, grid: Grid) -> list[Array]:
    """The values that ``body`` yields, as arrays that broadcast to the grid."""
    env: dict[SSAValue, Array] = dict(grid.scalars)

    def get(v: SSAValue) -> Array:
        return env[v] if v in env else grid.buffers[v]

    with np.errstate(all="ignore"):
        for op in body.ops:
            if isinstance(op, linalg.ops.YieldOp):
                return [get(v) for v in op.operands]
            if isinstance(op, memref.StoreOp):
                *where, value = np.broadcast_arrays(*(get(v) for v in op.indices), get(op.value))
                grid.buffers[op.memref][tuple(where)] = value
            else:
                env[op.results[0]] = evaluate_one(op, get, grid)
    raise TypeError("a body without linalg.yield")


def evaluate_one(op: Operation, get: Callable[[SSAValue], Array], grid: Grid) -> Array:
    """The result of ``op``, whose operands ``get`` gives."""
    match op:
        case arith.ConstantOp():
            attr = op.value
            assert isinstance(attr, FloatAttr | IntegerAttr)
            return np.asarray(attr.value.data).astype(scalar_dtype(op.result.type))
        case linalg.ops.IndexOp():
            return grid.indices[op.dim.value.data]
        case memref.LoadOp():
            where = tuple(get(v) for v in op.indices)
            array = grid.buffers[op.memref]
            for index, extent in zip(where, array.shape, strict=True):
                if index.size and not (index.min() >= 0 and index.max() < extent):
                    raise IndexError(f"memref.load out of bounds: {index.min()}..{index.max()} of {extent}")
            return array[where]
        case arith.SelectOp():
            return np.where(get(op.cond), get(op.lhs), get(op.rhs))
        case arith.CmpfOp() | arith.CmpiOp():
            return _compare(op, get(op.lhs), get(op.rhs))
    values = [get(v) for v in op.operands]
    if op.name in _BINARY:
        result = _BINARY[op.name](*values)
    elif op.name in _UNARY:
        result = _UNARY[op.name](*values)
    elif op.name == "math.fma":
        result = values[0] * values[1] + values[2]
    elif len(values) == 1 and op.name.startswith("arith."):
        return _cast(op, values[0])
    else:
        raise TypeError(f"{op.name} is no scalar operation that the interpreter knows")
    return result.astype(scalar_dtype(op.results[0].type), copy=False)
