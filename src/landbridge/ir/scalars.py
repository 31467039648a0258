"""Scalar expressions of PrimFunc bodies, written with Python operators.

A Value is an SSA value with its dtype name (arith is signless, so only the name tells the sign of an integer).
``index`` is the dtype of loop indices. Mixing dtypes raises; casts are explicit, as in the models we import.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from xdsl.builder import Builder
from xdsl.dialects import arith, linalg, math, memref
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Operation, SSAValue

from landbridge.errors import CompileError
from landbridge.ir.new_operation import new_operation
from landbridge.ir.prim_ops import ByteDotOp, RemFOp, SizeOp
from landbridge.ir.scalar_dtypes import arith_type, bits_of, in_range, is_float, saturation
from landbridge.sizes.size import Size

Number: TypeAlias = "Value | int | float | bool | Size"

_CMPF = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_FMF = arith.FastMathFlagsAttr([FastMathFlag.ALLOW_CONTRACT])
# max(x, 0) is one instruction when either zero will do; NaN still propagates.
_EXTREMA = arith.FastMathFlagsAttr([FastMathFlag.ALLOW_CONTRACT, FastMathFlag.NO_SIGNED_ZEROS])


class Value:
    """An SSA scalar with operators; a ScalarBuilder makes it."""

    __slots__ = ("b", "dtype", "ssa")

    def __init__(self, builder: ScalarBuilder, ssa: SSAValue, dtype: str) -> None:
        self.b, self.ssa, self.dtype = builder, ssa, dtype

    def __add__(self, o: Number) -> Value:
        return self.b.binary("add", self, o)

    def __radd__(self, o: Number) -> Value:
        return self.b.binary("add", o, self)

    def __sub__(self, o: Number) -> Value:
        return self.b.binary("sub", self, o)

    def __rsub__(self, o: Number) -> Value:
        return self.b.binary("sub", o, self)

    def __mul__(self, o: Number) -> Value:
        return self.b.binary("mul", self, o)

    def __rmul__(self, o: Number) -> Value:
        return self.b.binary("mul", o, self)

    def __truediv__(self, o: Number) -> Value:
        return self.b.binary("div", self, o)

    def __rtruediv__(self, o: Number) -> Value:
        return self.b.binary("div", o, self)

    def __neg__(self) -> Value:
        return self.b.neg(self)

    def __lt__(self, o: Number) -> Value:
        return self.b.compare("lt", self, o)

    def __le__(self, o: Number) -> Value:
        return self.b.compare("le", self, o)

    def __gt__(self, o: Number) -> Value:
        return self.b.compare("gt", self, o)

    def __ge__(self, o: Number) -> Value:
        return self.b.compare("ge", self, o)

    def eq(self, o: Number) -> Value:
        """Returns ``self == o`` (ordered for floats)."""
        return self.b.compare("eq", self, o)

    def ne(self, o: Number) -> Value:
        """Returns ``self != o`` (true when a float is NaN)."""
        return self.b.compare("ne", self, o)

    def __and__(self, o: Number) -> Value:
        return self.b.binary("and", self, o)

    def __or__(self, o: Number) -> Value:
        return self.b.binary("or", self, o)

    def __xor__(self, o: Number) -> Value:
        return self.b.binary("xor", self, o)


_FLOAT_BINARY: dict[str, type[Operation]] = {
    "add": arith.AddfOp,
    "sub": arith.SubfOp,
    "mul": arith.MulfOp,
    "div": arith.DivfOp,
    "rem": RemFOp,
    "max": arith.MaximumfOp,
    "min": arith.MinimumfOp,
}
_INT_BINARY: dict[str, tuple[type[Operation], type[Operation]]] = {
    "add": (arith.AddiOp, arith.AddiOp),
    "sub": (arith.SubiOp, arith.SubiOp),
    "mul": (arith.MuliOp, arith.MuliOp),
    "div": (arith.DivSIOp, arith.DivUIOp),
    "rem": (arith.RemSIOp, arith.RemUIOp),
    "floordiv": (arith.FloorDivSIOp, arith.DivUIOp),
    "max": (arith.MaxSIOp, arith.MaxUIOp),
    "min": (arith.MinSIOp, arith.MinUIOp),
    "and": (arith.AndIOp, arith.AndIOp),
    "or": (arith.OrIOp, arith.OrIOp),
    "xor": (arith.XOrIOp, arith.XOrIOp),
    "shl": (arith.ShLIOp, arith.ShLIOp),
    "shr": (arith.ShRSIOp, arith.ShRUIOp),
}
_MATH: dict[str, type[Operation]] = {
    "abs": math.AbsFOp, "acos": math.AcosOp, "acosh": math.AcoshOp, "asin": math.AsinOp,
    "asinh": math.AsinhOp, "atan": math.AtanOp, "atanh": math.AtanhOp, "ceil": math.CeilOp,
    "cos": math.CosOp, "cosh": math.CoshOp, "erf": math.ErfOp, "exp": math.ExpOp, "expm1": math.ExpM1Op,
    "floor": math.FloorOp, "log": math.LogOp, "log1p": math.Log1pOp, "round_even": math.RoundEvenOp,
    "rsqrt": math.RsqrtOp, "sin": math.SinOp, "sinh": math.SinhOp, "sqrt": math.SqrtOp, "tan": math.TanOp,
    "tanh": math.TanhOp, "trunc": math.TruncOp,
}  # fmt: skip


class ScalarBuilder:
    """Builds the scalar body of one PrimFunc stage."""

    def __init__(self, builder: Builder, flags: arith.FastMathFlagsAttr = _FMF) -> None:
        self._builder, self._flags = builder, flags

    def uncontracted(self) -> ScalarBuilder:
        """Returns a builder whose float operations are each rounded: no product and sum become one fused operation."""
        return ScalarBuilder(self._builder, arith.FastMathFlagsAttr("none"))

    def _add(self, op: Operation, dtype: str) -> Value:
        return Value(self, self._builder.insert(op).results[0], dtype)

    def wrap(self, ssa: SSAValue, dtype: str) -> Value:
        """Returns an existing SSA value as a Value."""
        return Value(self, ssa, dtype)

    def const(self, value: int | float | bool | Size, dtype: str) -> Value:
        """Returns a constant of ``dtype``; a Size becomes the number that it is at run time."""
        ty = arith_type(dtype)
        if isinstance(value, Size):
            own = "index" if dtype == "index" else "int64"
            return self.cast(self._add(SizeOp(value, arith_type(own)), own), dtype)
        if is_float(dtype):
            assert isinstance(ty, AnyFloat)
            attr: FloatAttr[Any] | IntegerAttr[Any] = FloatAttr(in_range(value, dtype), ty)
        else:
            assert isinstance(ty, IntegerType | IndexType)
            number = int(value)
            if isinstance(ty, IntegerType):
                width = ty.width.data
                number &= (1 << width) - 1
                if width > 1 and number >= 1 << (width - 1):
                    number -= 1 << width
            attr = IntegerAttr(number, ty)
        return self._add(new_operation(arith.ConstantOp, (), (ty,), {"value": attr}), dtype)

    def value(self, x: Number, dtype: str) -> Value:
        """Returns ``x`` as a Value of ``dtype``; a Value of another dtype raises."""
        if isinstance(x, Value):
            if x.dtype != dtype:
                raise CompileError(f"scalar of {x.dtype} where {dtype} is needed; cast explicitly")
            return x
        return self.const(x, dtype)

    def _pair(self, a: Number, b: Number) -> tuple[Value, Value, str]:
        dtype = a.dtype if isinstance(a, Value) else b.dtype if isinstance(b, Value) else ""
        if not dtype:
            raise CompileError("a scalar operation needs at least one IR value")
        return self.value(a, dtype), self.value(b, dtype), dtype

    def binary(self, kind: str, a: Number, b: Number) -> Value:
        """Apply one of add sub mul div rem max min (floats propagate NaN); floordiv and or xor shl shr on integers."""
        x, y, dtype = self._pair(a, b)
        if is_float(dtype):
            if kind not in _FLOAT_BINARY:
                raise CompileError(f"no float operation {kind!r}")
            flags = _EXTREMA if kind in ("max", "min") else self._flags
            op = _FLOAT_BINARY[kind]
            return self._add(new_operation(op, (x.ssa, y.ssa), (x.ssa.type,), {"fastmath": flags}), dtype)
        signed, unsigned = _INT_BINARY[kind]
        chosen = unsigned if dtype.startswith("uint") or dtype == "bool" else signed
        return self._add(new_operation(chosen, (x.ssa, y.ssa), (x.ssa.type,)), dtype)

    def maximum(self, a: Number, b: Number) -> Value:
        """Returns the larger; NaN when either is NaN."""
        return self.binary("max", a, b)

    def minimum(self, a: Number, b: Number) -> Value:
        """Returns the smaller; NaN when either is NaN."""
        return self.binary("min", a, b)

    def neg(self, a: Value) -> Value:
        """Returns ``-a``."""
        if is_float(a.dtype):
            return self._add(arith.NegfOp(a.ssa), a.dtype)
        return self.binary("sub", 0, a)

    def compare(self, kind: str, a: Number, b: Number) -> Value:
        """Compare by eq ne lt le gt ge and return a bool; ordered on floats, except ne."""
        x, y, dtype = self._pair(a, b)
        if is_float(dtype):
            return self._add(arith.CmpfOp(x.ssa, y.ssa, _CMPF[kind]), "bool")
        sign = "" if kind in ("eq", "ne") else "u" if dtype.startswith("uint") or dtype == "bool" else "s"
        return self._add(arith.CmpiOp(x.ssa, y.ssa, sign + kind), "bool")

    def matches(self, a: Value, b: Value) -> Value:
        """Returns whether ``a`` is the extreme ``b`` of a reduction it took part in: equal, or NaN, which wins every
        one."""
        return a.eq(b) | a.ne(a) if is_float(a.dtype) else a.eq(b)

    def logical_not(self, a: Value) -> Value:
        """Returns ``not a`` of a bool."""
        return self.binary("xor", a, True)

    def select(self, condition: Value, a: Number, b: Number) -> Value:
        """Returns ``a if condition else b``; both are evaluated."""
        x, y, dtype = self._pair(a, b)
        return self._add(arith.SelectOp(condition.ssa, x.ssa, y.ssa), dtype)

    def math(self, name: str, a: Value) -> Value:
        """Apply a unary function of the math dialect, by its short name ("exp", "tanh", ...)."""
        if name not in _MATH or not is_float(a.dtype):
            raise CompileError(f"no scalar function {name!r} on {a.dtype}")
        return self._add(new_operation(_MATH[name], (a.ssa,), (a.ssa.type,)), a.dtype)

    def bits(self, a: Value) -> Value:
        """Returns the bits of a float32 or float64 as an integer of that width."""
        dtype = f"int{bits_of(a.dtype)}"
        return self._add(arith.BitcastOp(a.ssa, arith_type(dtype)), dtype)

    def byte_dot(self, a: Value, b: Value) -> Value:
        """Returns the sum of the products of four bytes of two int32: unsigned ones of ``a``, signed ones of ``b``."""
        return self._add(ByteDotOp(self.value(a, "int32").ssa, self.value(b, "int32").ssa), "int32")

    def exp(self, a: Value) -> Value:
        """Returns e to the ``a``."""
        return self.math("exp", a)

    def sqrt(self, a: Value) -> Value:
        """Returns the square root; NaN below 0."""
        return self.math("sqrt", a)

    def pow(self, a: Value, b: Number) -> Value:
        """Returns ``a`` to the ``b`` (float)."""
        return self._add(math.PowFOp(a.ssa, self.value(b, a.dtype).ssa), a.dtype)

    def sigmoid(self, a: Value) -> Value:
        """Returns ``1 / (1 + exp(-a))``, in a form that is accurate for the smallest results too."""
        e = self.exp(self.minimum(a, saturation(a.dtype)))
        return e / (e + 1.0)

    def index(self, dim: int) -> Value:
        """Returns the iteration index of loop ``dim``."""
        return self._add(linalg.ops.IndexOp(dim), "index")

    def load(self, source: SSAValue, indices: Sequence[Number], dtype: str) -> Value:
        """Returns one element at computed indices, which must be in bounds."""
        where = [self.value(i, "index").ssa for i in indices]
        return self._add(memref.LoadOp.get(source, where), dtype)

    def store(self, target: SSAValue, indices: Sequence[Number], value: Value) -> None:
        """Write one element at computed indices, which must be in bounds; only for stages that are iterated."""
        where = [self.value(i, "index").ssa for i in indices]
        self._builder.insert(memref.StoreOp.get(value.ssa, target, where))

    def cast(self, a: Value, dtype: str) -> Value:
        """Convert as C does; float to integer truncates, to bool is ``!= 0``."""
        if a.dtype == dtype:
            return a
        if dtype == "bool":
            return a.ne(0)
        src, dst = arith_type(a.dtype), arith_type(dtype)
        if {a.dtype, dtype} == {"float16", "bfloat16"}:
            a, src = self.cast(a, "float32"), arith_type("float32")
        op = _cast_op(a.dtype, dtype)
        if op is None:
            return Value(self, a.ssa, dtype)
        if src == dst:
            return Value(self, a.ssa, dtype)
        return self._add(new_operation(op, (a.ssa,), (dst,)), dtype)


def _cast_op(src: str, dst: str) -> type[Operation] | None:
    """Returns the arith operation that casts; None when the bits stay."""
    unsigned = src.startswith("uint") or src == "bool"
    if "index" in (src, dst):
        return arith.IndexCastOp
    if is_float(src) and is_float(dst):
        return arith.ExtFOp if bits_of(dst) > bits_of(src) else arith.TruncFOp
    if is_float(src):
        return arith.FPToUIOp if dst.startswith("uint") else arith.FPToSIOp
    if is_float(dst):
        return arith.UIToFPOp if unsigned else arith.SIToFPOp
    if bits_of(src) == bits_of(dst):
        return None
    if bits_of(src) > bits_of(dst):
        return arith.TruncIOp
    return arith.ExtUIOp if unsigned else arith.ExtSIOp
