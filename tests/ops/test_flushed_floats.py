"""Every elementwise operator where kernels flush denormal floats: an operand is itself or zero, and so is a result."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import ml_dtypes
import numpy as np
import pytest

from landbridge.ops.accuracy import accuracy_of
from tests.ops.elementwise_models import OPSET, Array, OneOperator
from tests.ops.elementwise_references import BINARY, UNARY, Case
from tests.ops.float_grids import FLOATS, excess, grid, pairs, special, wide
from tests.ops.one_node import takes

KINDS = ("llvm", "c")
#: How much more a result may be off than where denormals are kept, in smallest normal numbers: what one step of an
#: operator flushes, a later one multiplies, by up to 88 in ``x * sigmoid(x)``.
LOST = 128
FLUSHED = ("float32", "bfloat16", "float64")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def tiny(dtype: str) -> float:
    return float(ml_dtypes.finfo(FLOATS[dtype]).tiny)


def is_denormal(x: Array) -> Array:
    return np.asarray((x != 0) & (np.abs(wide(x)) < tiny(x.dtype.name)))


def check(case: Case, kind: str, got: Array, *inputs: Array) -> None:
    """``got`` is the function of ``inputs``, each as it is or without denormals."""
    declared, dtype = accuracy_of("", case.op, OPSET), inputs[0].dtype.name
    assert declared is not None
    wrong = np.ones(got.shape, bool)
    for read in product(*((x, np.where(is_denormal(x), np.copysign(x.dtype.type(0), x), x)) for x in inputs)):
        exact = tuple(map(wide, read))
        want = case.function(*exact)
        terms = None if case.condition is None else case.condition(*exact)
        near = np.abs(wide(got) - want) <= LOST * tiny(dtype)
        wrong &= ~near & (excess(got, want, dtype, declared, kind, terms) > 1)
    found = [(*(x[i] for x in inputs), got[i]) for i in np.flatnonzero(wrong)[:4]]
    assert not found, f"{case.op} on {kind}: operands and result {found}"


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("name", "dtype", "kind"),
    [(n, d, k) for n, d, k in product(UNARY, FLUSHED, KINDS) if takes(UNARY[n].op, d, OPSET)],
)
def test_of_one(name: str, dtype: str, kind: str) -> None:
    case = UNARY[name]
    x = np.concatenate([special(dtype), grid(dtype, 3000)])
    check(case, kind, OneOperator(f"{kind} -denormals=flush", case.op, [x], x.dtype, case.attributes)(x), x)


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("name", "dtype", "kind"),
    [(n, d, k) for n, d, k in product(BINARY, FLUSHED, KINDS) if takes(BINARY[n].op, d, OPSET)],
)
def test_of_two(name: str, dtype: str, kind: str) -> None:
    case = BINARY[name]
    a, b = pairs(dtype, 2000)
    got = OneOperator(f"{kind} -denormals=flush", case.op, [a, b], a.dtype, case.attributes)(a, b)
    check(case, kind, got, a, b)
    if case.op in ("Add", "Sub", "Mul", "Div"):
        assert not is_denormal(got).any()


@pytest.mark.sample(5)
@pytest.mark.parametrize(("op", "dtype"), list(product(("Log", "Pow"), ("float32", "float64"))))
@pytest.mark.parametrize("kind", KINDS)
def test_functions_that_look_at_bits_are_given_zero(op: str, dtype: str, kind: str) -> None:
    """The C library's too, whose logarithm of a denormal number else is of neither."""
    x = np.array([tiny(dtype) / 2, tiny(dtype) / 1024, tiny(dtype)], dtype)
    inputs = [x] if op == "Log" else [x, np.full(3, 0.01, dtype)]
    got = OneOperator(f"{kind} -denormals=flush", op, inputs, x.dtype)(*inputs)
    assert got[:2].tolist() == ([-np.inf] * 2 if op == "Log" else [0, 0])
    assert np.isfinite(got[2]) and got[2] != 0


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("name", "kind"), [(n, k) for n, k in product(UNARY, KINDS) if takes(UNARY[n].op, "float16", OPSET)]
)
def test_half_precision_is_not_touched(name: str, kind: str) -> None:
    """Denormal numbers of f16 are ordinary ones of f32."""
    case, x = UNARY[name], grid("float16", 0)
    flush, keep = (
        OneOperator(f"{kind} -denormals={setting}", case.op, [x], x.dtype, case.attributes)(x)
        for setting in ("flush", "keep")
    )
    np.testing.assert_array_equal(flush, keep)
