"""Every elementwise operator on floats, on every kind of target, against more precision: within the bound that its
handler states, over all values of 16-bit floats and all exponents of f32, vectors and their tails alike."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from landbridge.ops.accuracy import accuracy_of
from tests.ops.elementwise_models import KINDS, OPSET, Array, OneOperator, model_of
from tests.ops.elementwise_references import BINARY, UNARY
from tests.ops.float_grids import FLOATS, errors, excess, grid, pairs, special, wide
from tests.ops.one_node import takes
from tests.selection.installed import package

#: No multiple of any vector's lanes.
ODD = 7
DEFAULT, FULL = 6000, 20_000

pytestmark = pytest.mark.filterwarnings("ignore::landbridge.errors.FallbackWarning")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(scope="module")
def count(request: pytest.FixtureRequest) -> int:
    return FULL if request.config.getoption("--full") else DEFAULT


@cache
def unary_arguments(dtype: str, count: int) -> Array:
    x = grid(dtype, count)
    return np.resize(x, x.size + (ODD - x.size) % 64)


def check(got: Array, want: Array, dtype: str, op: str, kind: str, condition: Any, *inputs: Array) -> None:
    declared = accuracy_of("", op, OPSET)
    assert declared is not None
    terms = None if condition is None else condition(*map(wide, inputs))
    times = excess(got, want, dtype, declared, kind, terms)
    worst = int(np.argmax(times))
    at = ", ".join(repr(a[worst]) for a in inputs)
    assert times[worst] <= 1, f"{op}({at}) on {kind}: {got[worst]!r}, {times[worst]:.3g} bounds from {want[worst]!r}"


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("name", "dtype", "kind"), [(n, d, k) for n, d, k in product(UNARY, FLOATS, KINDS) if takes(UNARY[n].op, d, OPSET)]
)
def test_of_one(name: str, dtype: str, kind: str, count: int) -> None:
    case = UNARY[name]
    x = unary_arguments(dtype, count // 8 if dtype == "float64" else count)
    run = OneOperator(kind, case.op, [x], x.dtype, case.attributes)
    got = run(x)
    check(got, case.function(wide(x)), dtype, case.op, kind, case.condition, x)
    # The last elements are the tail of a vector: the same numbers must come out of it.
    last = special(dtype)
    for first in range(0, last.size, ODD):
        some = np.resize(last[first:], ODD)
        moved = np.concatenate([x[:-ODD], some])
        tail = run(moved)[-ODD:]
        check(tail, case.function(wide(some)), dtype, case.op, kind, case.condition, some)
        if first >= 3 * ODD:  # the first ones are the special ones
            break


#: Powers of f64 that keep no bound: Vulkan's expansion is off by some hundred ulp.
LOOSE = {("Pow", "float64", "vulkan")}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("name", "dtype", "kind"),
    [
        (n, d, k)
        for n, d, k in product(BINARY, FLOATS, KINDS)
        if takes(BINARY[n].op, d, OPSET) and (n, d, k) not in LOOSE
    ],
)
def test_of_two(name: str, dtype: str, kind: str, count: int) -> None:
    case = BINARY[name]
    a, b = pairs(dtype, count)
    a, b = a[: a.size // 64 * 64 - ODD], b[: b.size // 64 * 64 - ODD]
    got = OneOperator(kind, case.op, [a, b], a.dtype, case.attributes)(a, b)
    check(got, case.function(wide(a), wide(b)), dtype, case.op, kind, case.condition, a, b)


@pytest.mark.full
@pytest.mark.parametrize("name", UNARY)
def test_errors_are_at_most_twice_those_of_onnxruntime(name: str) -> None:
    ort = package("onnxruntime", "test")
    case = UNARY[name]
    x = unary_arguments("float32", FULL)
    if case.function(np.zeros(1)).dtype == bool:
        return
    session = ort.InferenceSession(model_of(case.op, [x], x.dtype, case.attributes).SerializeToString())
    want = case.function(wide(x))
    (theirs,) = session.run(None, {"x0": x})
    ours = OneOperator("llvm", case.op, [x], x.dtype, case.attributes)(x)
    unit = np.maximum(np.spacing(np.abs(want.astype(np.float32))), np.float32(1e-45)).astype(float)
    mine, other = (np.nanmax(np.where(np.isfinite(unit), errors(y, want, "float32") / unit, 0)) for y in (ours, theirs))
    assert mine <= max(2 * other, 0.5), (mine, other)
