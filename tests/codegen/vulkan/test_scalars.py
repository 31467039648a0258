"""Operations on scalars against numpy, edge values included."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import inf, nan
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import arith, math
from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS, FastMathFlagsAttr
from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation

from landbridge.ir.prim_ops import ByteDotOp
from tests.codegen.test_byte_dot import byte_dots
from tests.codegen.vulkan.elementwise import Array, compute, type_of

INTEGERS = [np.int8, np.int16, np.int32, np.int64]
FLOATS = [np.float32, np.float64]
_EDGES = [0.0, -0.0, 1.0, -1.5, 2.5, -2.5, 0.5, 3.7e5, 1e-40, inf, -inf, nan, 16777217.0, -1e30]


def integers(dtype: Any) -> tuple[Array, Array]:
    """All pairs of a few numbers of each kind."""
    info = np.iinfo(dtype)
    values = [0, 1, -1, 2, 7, -7, 100, -128, info.min, info.min + 1, info.max]
    pairs = np.array(list(product(values, values)), dtype)
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def floats(dtype: Any) -> tuple[Array, Array]:
    pairs = np.array(list(product(_EDGES, _EDGES)), dtype)
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def binary(op: type[Operation], a: Array, b: Array, dtype: Any = None, **properties: Any) -> Array:
    kind = type_of(a.dtype if dtype is None else dtype)
    return compute([a, b], a.dtype if dtype is None else dtype, lambda code, x: code.emit(op, x, kind, **properties))


def unary(op: type[Operation], a: Array, dtype: Any = None, **properties: Any) -> Array:
    kind = type_of(a.dtype if dtype is None else dtype)
    return compute([a], a.dtype if dtype is None else dtype, lambda code, x: code.emit(op, x, kind, **properties))


def unsigned(a: Array) -> Array:
    return a.view(f"u{a.dtype.itemsize}")


def same(found: Array, wanted: Array) -> None:
    """Equal bit by bit, but that every NaN is one."""
    assert found.dtype == wanted.dtype
    if wanted.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted)
        return
    whole = f"u{wanted.dtype.itemsize}"
    wrong = (found.view(whole) != wanted.view(whole)) & ~(np.isnan(found) & np.isnan(wanted))
    assert not wrong.any(), (found[wrong], wanted[wrong])


_WRAPPING = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.AndIOp: lambda a, b: a & b,
    arith.OrIOp: lambda a, b: a | b,
    arith.XOrIOp: lambda a, b: a ^ b,
    arith.MaxSIOp: np.maximum,
    arith.MinSIOp: np.minimum,
    arith.MaxUIOp: lambda a, b: np.maximum(unsigned(a), unsigned(b)).view(a.dtype),
    arith.MinUIOp: lambda a, b: np.minimum(unsigned(a), unsigned(b)).view(a.dtype),
}
_DIVIDING = {
    arith.FloorDivSIOp: lambda a, b: a // b,
    arith.CeilDivSIOp: lambda a, b: -(-a // b),
    arith.DivSIOp: lambda a, b: np.abs(a.astype(object)) // np.abs(b.astype(object)) * np.sign(a) * np.sign(b),
    arith.RemSIOp: np.fmod,
    arith.DivUIOp: lambda a, b: (unsigned(a) // unsigned(b)).view(a.dtype),
    arith.RemUIOp: lambda a, b: (unsigned(a) % unsigned(b)).view(a.dtype),
}


@pytest.mark.sample(14)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", _WRAPPING, ids=lambda op: op.name)
def test_integers(op: type[Operation], dtype: Any) -> None:
    a, b = integers(dtype)
    with np.errstate(over="ignore"):
        same(binary(op, a, b), _WRAPPING[op](a, b).astype(dtype))


def test_byte_dots() -> None:
    a, b = integers(np.int32)
    same(binary(ByteDotOp, a, b), byte_dots(a, b))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("op", _DIVIDING, ids=lambda op: op.name)
def test_divisions(op: type[Operation], dtype: Any) -> None:
    a, b = integers(dtype)
    legal = (b != 0) & (np.abs(a.astype(object)) < 1 << 30).astype(bool)  # nothing that overflows
    a, b = a[legal].copy(), b[legal].copy()
    same(binary(op, a, b), np.asarray(_DIVIDING[op](a, b)).astype(dtype))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_shifts(dtype: Any) -> None:
    a = integers(dtype)[0]
    bits = (np.arange(a.size) % (8 * a.itemsize)).astype(dtype)
    same(binary(arith.ShLIOp, a, bits), a << bits)
    same(binary(arith.ShRSIOp, a, bits), a >> bits)
    same(binary(arith.ShRUIOp, a, bits), (unsigned(a) >> unsigned(bits)).view(dtype))


@pytest.mark.sample(11)
@pytest.mark.parametrize("number", range(10))
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64])
def test_comparisons_of_integers(dtype: Any, number: int) -> None:
    name = CMPI_COMPARISON_OPERATIONS[number]
    a, b = integers(np.int8) if dtype == np.bool_ else integers(dtype)
    a, b = (a % 2 == 0, b % 2 == 0) if dtype == np.bool_ else (a, b)
    left, right = (-a.astype(np.int8), -b.astype(np.int8)) if dtype == np.bool_ else (a, b)  # true is -1 with a sign
    if name[0] == "u":
        left, right = unsigned(left), unsigned(right)
    compare = {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }
    wanted = compare[name.lstrip("su") if name not in ("eq", "ne") else name](left, right)
    found = binary(arith.CmpiOp, a, b, np.bool_, predicate=IntegerAttr(number, IntegerType(64)))
    same(found, wanted)


@pytest.mark.sample(14)
@pytest.mark.parametrize("number", range(16))
@pytest.mark.parametrize("dtype", [*FLOATS, np.float16])
def test_comparisons_of_floats(dtype: Any, number: int) -> None:
    name = CMPF_COMPARISON_OPERATIONS[number]
    with np.errstate(over="ignore"):
        a, b = floats(dtype)
    nans = np.isnan(a) | np.isnan(b)
    if name in ("true", "false"):
        wanted = np.full(a.shape, name == "true")
    elif name in ("ord", "uno"):
        wanted = nans == (name == "uno")
    else:
        ordered = {"eq": a == b, "gt": a > b, "ge": a >= b, "lt": a < b, "le": a <= b, "ne": (a != b) & ~nans}[name[1:]]
        wanted = ordered | nans if name[0] == "u" else ordered
    flags = FastMathFlagsAttr("none")
    found = binary(arith.CmpfOp, a, b, np.bool_, predicate=IntegerAttr(number, IntegerType(64)), fastmath=flags)
    same(found, wanted)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_arithmetic(dtype: Any) -> None:
    a, b = floats(dtype)
    normal = (np.abs(a) != dtype(1e-40)) & (np.abs(b) != dtype(1e-40))  # subnormal numbers may be flushed
    a, b = a[normal].copy(), b[normal].copy()
    flags = FastMathFlagsAttr("none")
    with np.errstate(all="ignore"):
        for op, function in {arith.AddfOp: np.add, arith.SubfOp: np.subtract, arith.MulfOp: np.multiply}.items():
            wanted = function(a, b)
            keep = (np.abs(wanted) >= np.finfo(dtype).tiny) | (wanted == 0) | np.isnan(wanted)
            same(binary(op, a, b, fastmath=flags)[keep], wanted[keep])
        same(unary(arith.NegfOp, a, fastmath=flags), -a)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", [arith.MaximumfOp, arith.MinimumfOp], ids=lambda op: op.name)
def test_extrema(op: type[Operation], dtype: Any) -> None:
    a, b = floats(dtype)
    largest = op is arith.MaximumfOp
    wanted = (np.maximum if largest else np.minimum)(a, b)
    zeros = (a == 0) & (b == 0)
    signs = np.signbit(a) & np.signbit(b) if largest else np.signbit(a) | np.signbit(b)
    wanted[zeros] = np.where(signs, dtype(-0.0), dtype(0.0))[zeros]
    same(binary(op, a, b, fastmath=FastMathFlagsAttr("none")), wanted)


@pytest.mark.parametrize("dtype", FLOATS)
def test_extrema_of_numbers(dtype: Any) -> None:
    a, b = floats(dtype)
    found = binary(arith.MaxnumfOp, a, b, fastmath=FastMathFlagsAttr("none"))
    np.testing.assert_array_equal(found, np.fmax(a, b))


_ROUNDINGS: dict[type[Operation], Callable[[Array], Array]] = {
    math.FloorOp: np.floor,
    math.CeilOp: np.ceil,
    math.TruncOp: np.trunc,
    math.RoundEvenOp: np.rint,
    math.RoundOp: lambda x: np.copysign(np.floor(np.abs(x.astype(np.longdouble)) + 0.5), x),
    math.AbsFOp: np.abs,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", _ROUNDINGS, ids=lambda op: op.name)
def test_roundings(op: type[Operation], dtype: Any) -> None:
    a = np.array([*_EDGES, 0.49999997, 8388607.5, -3.5, 1.5, -0.3, 0.7], dtype)
    a = a[np.abs(a) != dtype(1e-40)]
    same(unary(op, a, fastmath=FastMathFlagsAttr("none")), _ROUNDINGS[op](a).astype(dtype))


@pytest.mark.sample(12)
@pytest.mark.parametrize("source", [*FLOATS, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("result", INTEGERS)
@pytest.mark.parametrize("sign", ["s", "u"])
def test_floats_to_integers_are_clamped(source: Any, result: Any, sign: str) -> None:
    info = np.iinfo(result if sign == "s" else f"u{np.dtype(result).itemsize}")
    edge = float(info.max)
    values = [*_EDGES, edge, edge + 1, 2 * edge, float(info.min), float(info.min) - 1, -edge * 3, 254.7, -0.9, 127.5]
    with np.errstate(over="ignore"):
        a = np.array(values, source)
    exact = [0 if np.isnan(x) else info.max if x == inf else info.min if x == -inf else int(x) for x in a.astype(float)]
    wanted = np.array([min(max(x, info.min), info.max) for x in exact], info.dtype).view(result)
    same(unary(arith.FPToSIOp if sign == "s" else arith.FPToUIOp, a, result), wanted)


@pytest.mark.parametrize("result", FLOATS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_to_floats(source: Any, result: Any) -> None:
    a = integers(source)[0]
    same(unary(arith.SIToFPOp, a, result), a.astype(result))
    same(unary(arith.UIToFPOp, a, result), unsigned(a).astype(result))


def test_integers_of_other_widths() -> None:
    for source, result in product(INTEGERS, INTEGERS):
        a = integers(source)[0]
        wider = np.dtype(result).itemsize > np.dtype(source).itemsize
        if wider:
            same(unary(arith.ExtSIOp, a, result), a.astype(result))
            same(unary(arith.ExtUIOp, a, result), unsigned(a).astype(unsigned(a.astype(result)).dtype).view(result))
        elif source != result:
            same(unary(arith.TruncIOp, a, result), a.astype(result))


@pytest.mark.parametrize("limit", [0, 5, -1, 1 << 40])
def test_comparisons_of_wider_integers_with_a_constant(limit: int) -> None:
    """A driver may compare what was widened at its old width."""
    a = integers(np.int32)[0]
    i64 = IntegerType(64)

    def below(code: Any, x: Any) -> Any:
        wide = code.emit(arith.ExtSIOp, x, i64)
        bound = code.add_op(arith.ConstantOp(IntegerAttr(limit, i64)))
        return code.emit(arith.CmpiOp, [wide, bound], type_of(np.bool_), predicate=IntegerAttr(2, i64))

    same(compute([a], np.bool_, below), a.astype(np.int64) < limit)


def test_truths() -> None:
    a, b = (np.array(list(product((False, True), repeat=2)))[:, i].copy() for i in range(2))
    for op, function in {
        arith.AndIOp: np.logical_and,
        arith.OrIOp: np.logical_or,
        arith.XOrIOp: np.logical_xor,
    }.items():
        same(binary(op, a, b), function(a, b))
    same(unary(arith.ExtUIOp, a, np.int32), a.astype(np.int32))
    same(unary(arith.ExtSIOp, a, np.int32), -a.astype(np.int32))
    same(unary(arith.UIToFPOp, a, np.float32), a.astype(np.float32))
    same(unary(arith.TruncIOp, np.arange(-5, 5, dtype=np.int32), np.bool_), np.arange(-5, 5) % 2 == 1)


@pytest.mark.parametrize("narrow", [np.float16, ml_dtypes.bfloat16])
def test_16_bit_floats_widen_exactly(narrow: Any) -> None:
    a = np.arange(1 << 16, dtype=np.uint16).view(narrow)
    found, wanted = unary(arith.ExtFOp, a, np.float32), a.astype(np.float32)
    subnormal = (np.abs(wanted) < np.finfo(np.float32).tiny) & (wanted != 0)  # of f32, which may be flushed
    same(found[~subnormal], wanted[~subnormal])


@pytest.mark.parametrize("narrow", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("wide", FLOATS)
def test_16_bit_floats_are_rounded_once(narrow: Any, wide: Any) -> None:
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 1 << 32, 1 << 15, np.uint64).astype(np.uint32)
    halves = np.arange(0x0400, 0x7BFF, 7, dtype=np.uint16).view(np.float16).astype(np.float32)
    between = (halves[1:] + halves[:-1]) / 2  # some of them ties of f16
    a = np.concatenate([bits.view(np.float32), between, np.array([65519.99, 65520, 1e-8, inf, -inf, nan], np.float32)])
    with np.errstate(over="ignore", invalid="ignore"):
        a = a[(np.abs(a) >= np.finfo(np.float32).tiny) | np.isnan(a)].astype(wide)
        wanted = a.astype(narrow)
    found = unary(arith.TruncFOp, a, narrow)
    equal = (found.view(np.uint16) == wanted.view(np.uint16)) | (np.isnan(found.astype(float)) & np.isnan(a))
    subnormal = np.abs(wanted.astype(float)) < float(ml_dtypes.finfo(narrow).tiny)
    assert (equal | subnormal).all(), a[~(equal | subnormal)][:9]


@pytest.mark.parametrize("narrow", [np.float16, ml_dtypes.bfloat16])
def test_16_bit_arithmetic_rounds_after_each_operation(narrow: Any) -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal(500).astype(narrow) for _ in "ab")
    for op, function in {arith.AddfOp: np.add, arith.MulfOp: np.multiply}.items():
        wanted = function(a.astype(np.float32), b.astype(np.float32)).astype(narrow)
        found = binary(op, a, b, fastmath=FastMathFlagsAttr("none"))
        assert (found.view(np.uint16) == wanted.view(np.uint16)).all()


def test_bits_of_floats() -> None:
    a = floats(np.float32)[0]
    same(unary(arith.BitcastOp, a, np.int32), a.view(np.int32))
    same(unary(arith.BitcastOp, a.view(np.int32), np.float32), a)


def test_a_product_and_a_sum_that_may_join() -> None:
    """Contraction is a fused operation or two rounded ones, and nothing else."""
    rng = np.random.default_rng(5)
    a, b, c = (rng.standard_normal(1000).astype(np.float32) for _ in "abc")
    contract = FastMathFlagsAttr([FastMathFlag.ALLOW_CONTRACT])
    kind = type_of(np.float32)

    def expression(code: Any, x: Any) -> Any:
        return code.emit(
            arith.AddfOp, [code.emit(arith.MulfOp, x[:2], kind, fastmath=contract), x[2]], kind, fastmath=contract
        )

    found = compute([a, b, c], np.float32, expression)
    exact = a.astype(float) * b + c
    twice = a * b + c
    assert ((found == exact.astype(np.float32)) | (found == twice)).all()


#: Functions of f32, where they are computed, and their largest error in ulp of f32.
_FUNCTIONS: dict[type[Operation], tuple[Callable[[Array], Array], float, float, float]] = {
    math.ExpOp: (np.exp, -80.0, 80.0, 4),
    math.Exp2Op: (np.exp2, -120.0, 120.0, 4),
    math.ExpM1Op: (np.expm1, -15.0, 80.0, 4),
    math.LogOp: (np.log, 1e-30, 1e30, 4),
    math.Log2Op: (np.log2, 1e-30, 1e30, 4),
    math.Log10Op: (np.log10, 1e-30, 1e30, 4),
    math.Log1pOp: (np.log1p, -0.9, 1e6, 4),
    math.TanhOp: (np.tanh, -9.0, 9.0, 4),
    math.SinOp: (np.sin, -100.0, 100.0, 4),
    math.CosOp: (np.cos, -100.0, 100.0, 4),
    math.SqrtOp: (np.sqrt, 0.0, 1e30, 3),
    math.RsqrtOp: (lambda x: 1 / np.sqrt(x), 1e-30, 1e30, 3),
    math.SinhOp: (np.sinh, -80.0, 80.0, 8),
    math.CoshOp: (np.cosh, -80.0, 80.0, 8),
    math.AsinhOp: (np.arcsinh, -1e6, 1e6, 8),
    math.AtanhOp: (np.arctanh, -0.99, 0.99, 8),
    math.AcoshOp: (np.arccosh, 1.1, 1e6, 8),
    math.CbrtOp: (np.cbrt, -1e6, 1e6, 8),
}


@pytest.mark.sample(11)
@pytest.mark.parametrize("op", _FUNCTIONS, ids=lambda op: op.name)
def test_functions(op: type[Operation]) -> None:
    function, low, high, ulps = _FUNCTIONS[op]
    rng = np.random.default_rng(6)
    spread = (
        np.geomspace(low, high, 4000)
        if low > 0
        else np.concatenate([rng.uniform(low, high, 4000), rng.uniform(-1, 1, 500)])
    )
    a = spread.astype(np.float32)
    a = a[(a >= low) & (a <= high)]
    wanted = function(a.astype(np.float64))
    found = unary(op, a, fastmath=FastMathFlagsAttr("none")).astype(np.float64)
    # The error of a difference near a root is measured against the argument's last bit.
    step = np.maximum(np.spacing(np.abs(wanted).astype(np.float32)), np.spacing(np.float32(1e-3)))
    worst = np.argmax(np.abs(found - wanted) / step)
    assert np.abs(found - wanted)[worst] <= ulps * step[worst], (a[worst], found[worst], wanted[worst])


def test_edges_of_functions() -> None:
    a = np.array([0.0, -0.0, inf, -inf, nan, -1.0], np.float32)
    with np.errstate(all="ignore"):
        for op, function in (
            (math.ExpOp, np.exp),
            (math.LogOp, np.log),
            (math.TanhOp, np.tanh),
            (math.SqrtOp, np.sqrt),
        ):
            np.testing.assert_allclose(unary(op, a, fastmath=FastMathFlagsAttr("none")), function(a), rtol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers(dtype: Any) -> None:
    bases = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, 10.0, inf, -inf, nan, 1.7, -1.7, 123.456]
    exponents = [0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 0.5, 4.0, 7.5, inf, -inf, nan, 10.0, -0.25]
    pairs = np.array(list(product(bases, exponents)), dtype)
    a, b = pairs[:, 0].copy(), pairs[:, 1].copy()
    with np.errstate(all="ignore"):
        wanted = np.power(a, b)
    found = binary(math.PowFOp, a, b, fastmath=FastMathFlagsAttr("none"))
    np.testing.assert_allclose(found, wanted, rtol=1e-6 if dtype == np.float32 else 1e-13)


def test_exponentials_of_doubles() -> None:
    rng = np.random.default_rng(7)
    a = np.concatenate([rng.uniform(-700, 700, 3000), rng.uniform(-1, 1, 1000), [0.0, inf, -inf, nan]])
    np.testing.assert_allclose(unary(math.ExpOp, a, fastmath=FastMathFlagsAttr("none")), np.exp(a), rtol=4e-16)
    b = np.concatenate([np.geomspace(1e-300, 1e300, 3000), rng.uniform(0.5, 2, 1000), [0.0, inf, nan]])
    with np.errstate(all="ignore"):
        found, wanted = unary(math.LogOp, b, fastmath=FastMathFlagsAttr("none")), np.log(b)
    np.testing.assert_allclose(found, wanted, rtol=4e-16, atol=2e-16)
