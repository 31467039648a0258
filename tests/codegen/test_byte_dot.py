"""``lb.byte_dot`` of each generator of CPU code: ends of bytes, scalars and vectors of any length."""

from __future__ import annotations

import numpy as np
import pytest

from landbridge.targets.target import Target
from tests.codegen.native import Array, build, call, pointwise

LANES = (0, 2, 4, 8, 16, 32)
SIZE = 64


def words(seed: int) -> Array:
    """Words of any bytes, and of the smallest and largest with and without a sign."""
    rng = np.random.default_rng(seed)
    ends = rng.choice(np.array([0, 1, 127, 128, 255], np.uint8), (SIZE // 2, 4))
    return np.concatenate([ends, rng.integers(0, 256, (SIZE // 2, 4), np.uint8)]).view(np.int32).reshape(SIZE)


def byte_dots(x: Array, y: Array) -> Array:
    return (x.view(np.uint8).astype(np.int32) * y.view(np.int8)).reshape(-1, 4).sum(1, dtype=np.int32)


def text_of(name: str, lanes: int, body: str = "") -> str:
    dot = '%d = "lb.byte_dot"(%x, %y) : ({T:x}, {T:y}) -> {T}\n    '
    return pointwise(
        name, dot + (body or "%r = arith.addi %a, %d : {T}"), dict.fromkeys("axy", "int32"), "int32", SIZE, lanes
    )


def test_sums_of_byte_dots(target: Target) -> None:
    image = build("\n".join(text_of(f"sums_{lanes}", lanes) for lanes in LANES), target)
    a, x, y = np.arange(SIZE, dtype=np.int32) + np.int32(-(2**31)), words(1), words(2)
    with np.errstate(over="ignore"):
        want = a + byte_dots(x, y)
    for lanes in LANES:
        found = np.empty(SIZE, np.int32)
        call(image, f"sums_{lanes}", a, x, y, found, end=SIZE)
        np.testing.assert_array_equal(found, want)


@pytest.mark.sample(7)
@pytest.mark.parametrize(
    ("body", "factors"),
    [
        ("%r = arith.addi %d, %d : {T}", (0, 2)),
        ("%s = arith.addi %d, %a : {T}\n    %r = arith.addi %s, %d : {T}", (1, 2)),
        ('%e = "lb.byte_dot"(%x, %y) : ({T:x}, {T:y}) -> {T}\n    %r = arith.addi %e, %d : {T}', (0, 2)),
        ("%r = arith.subi %a, %d : {T}", (1, -1)),
    ],
)
def test_byte_dots_that_no_single_addition_reads(body: str, factors: tuple[int, int], target: Target) -> None:
    image = build(text_of("dots", 8, body), target)
    a, x, y, found = np.arange(SIZE, dtype=np.int32), words(3), words(4), np.empty(SIZE, np.int32)
    call(image, "dots", a, x, y, found, end=SIZE)
    np.testing.assert_array_equal(found, factors[0] * a + factors[1] * byte_dots(x, y))
