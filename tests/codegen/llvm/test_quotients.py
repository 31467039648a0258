"""Quotients by constants as products: every mantissa, and what is no usual number, against this machine's division."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from landbridge.codegen.llvm.isa import isa_of
from landbridge.codegen.llvm.print_ir import print_functions
from landbridge.instruction_sets.isa import Isa
from landbridge.targets import Target
from tests.codegen.native import build, call, parse, pointwise

LANES = 8
DIVISORS = [6.0, -3.0, 1.0000001, 1.9999999, 255.0, 0.7, 2.0**70]


def text_of(divisor: float, size: int) -> str:
    body = f"%c = arith.constant dense<{np.float32(divisor)!s}> : {{T}}\n    %r = arith.divf %a, %c : {{T}}"
    return pointwise("quotient", body, {"a": "float32"}, "float32", size, LANES)


def quotients(x: np.ndarray, divisor: float) -> np.ndarray:
    slow = lambda *given: replace(isa_of(*given), slow_division=True)  # noqa: E731
    y = np.empty_like(x)
    with patch("landbridge.codegen.llvm.image.isa_of", slow):
        image = build(text_of(divisor, x.size), Target("llvm -denormals=keep"))
    call(image, "quotient", x, y, end=x.size)
    return y


@pytest.mark.sample(2)
@pytest.mark.parametrize("divisor", DIVISORS)
def test_every_mantissa(divisor: float) -> None:
    x = (np.arange(1 << 23, dtype=np.uint32) | np.float32(1).view(np.uint32)).view(np.float32)
    for part in (x, -x * np.float32(2.0**-90), x * np.float32(2.0**126)):
        np.testing.assert_array_equal(quotients(part, divisor), part / np.float32(divisor))


@pytest.mark.parametrize("divisor", DIVISORS)
def test_what_is_no_usual_number(divisor: float) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1.2e-38], np.float32)
    with np.errstate(over="ignore"):
        found, wanted = quotients(x, divisor), x / np.float32(divisor)
    np.testing.assert_allclose(found, wanted, rtol=2e-7, atol=1.5e-45)
    assert (np.signbit(found) == np.signbit(wanted))[~np.isnan(wanted)].all()


def test_boards_divide_by_no_constant() -> None:
    (function,) = parse(text_of(6.0, 8)).body.block.ops
    assert "fdiv" not in print_functions([function], isa_of("aarch64", 128, ()))  # type: ignore[list-item]
    assert "fdiv" in print_functions([function], Isa(256))  # type: ignore[list-item]
    assert not isa_of("x86_64", 512, ("fma", "f16c")).slow_division


def test_other_divisors_are_divided_by() -> None:
    for divisor in (0.7, 2.0**70, 0.0, 1.0):
        (function,) = parse(text_of(divisor, 8)).body.block.ops
        assert "fdiv" in print_functions([function], isa_of("aarch64", 128, ()))  # type: ignore[list-item]
