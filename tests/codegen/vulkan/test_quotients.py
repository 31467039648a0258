"""Quotients that are put right by fused multiply-adds, on numbers in place of a driver whose divisions are off."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.codegen.vulkan import glsl
from landbridge.codegen.vulkan.quotients import quotient
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.spirv import Op

Array = np.ndarray[Any, Any]
_EDGES = np.array([0, -0.0, 1, -3, np.inf, -np.inf, np.nan, 1e-40, 1e-38, 3e38, 2.5e37, 7e-31], np.float32)


class OffByUnits:
    """Computes what an emitter is told to emit. Quotients are off by as much as Vulkan lets a driver be, products and
    sums are rounded, multiply-adds once: 64 bits hold a product of two floats."""

    rounds_quotients = False

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def constant(self, value: float, element: str) -> Array:
        return np.array(value, np.float32)

    def library(self, number: int, element: str, *x: Array) -> Array:
        if number == glsl.OPCODES["fabs"]:
            return np.abs(x[0])
        assert number == glsl.OPCODES["fma"]
        a, b, c = (v.astype(np.longdouble) for v in x)
        return (a * b + c).astype(np.float32)

    def emit(self, op: Op, element: str, *x: Array) -> Array:
        match op:
            case Op.FDiv:
                exact = x[0] / x[1]
                off = self._random.integers(-2, 3, exact.shape)
                return np.where(np.isfinite(exact) & (exact != 0), exact + off * np.spacing(exact), exact)
            case Op.FNegate:
                return -x[0]
            case Op.FMul:
                return x[0] * x[1]
            case Op.FSub:
                return x[0] - x[1]
            case Op.FOrdLessThan:
                return x[0] < x[1]
            case Op.Select:
                return np.where(*x)
        raise AssertionError(op)


def computed(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return quotient(OffByUnits(1), [a, b], "f32", "f32")  # type: ignore


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_float(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (np.exp(rng.uniform(-30, 30, 100_000)) * rng.choice([-1, 1], 100_000) for _ in "ab")
    a, b = a.astype(np.float32), b.astype(np.float32)
    assert np.array_equal(computed(a, b), a / b)


def test_halves_are_what_they_are() -> None:
    """What quantization rounds: 25.5 of 6.375 by a quarter, and the like."""
    scale = np.repeat(np.float32([0.25, 0.1, 3 / 255, 0.0117]), 256)
    value = (np.tile(np.arange(256), 4) + 0.5).astype(np.float32) * scale
    assert np.array_equal(np.rint(computed(value, scale)), np.rint(value / scale))


def test_what_has_no_neighbours_is_the_drivers() -> None:
    a, b = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(_EDGES, _EDGES))
    with np.errstate(all="ignore"):
        wanted = a / b
    found = computed(a, b)
    plain = ~np.isfinite(wanted) | (wanted == 0)
    np.testing.assert_array_equal(found[plain], wanted[plain])
    assert np.array_equal(np.signbit(found[plain & ~np.isnan(wanted)]), np.signbit(wanted[plain & ~np.isnan(wanted)]))
    with np.errstate(all="ignore"):
        near = np.abs(found.astype(float) - wanted.astype(float)) <= 2 * np.abs(np.spacing(wanted.astype(np.float32)))
    assert near[~plain].all()


def test_only_targets_that_say_so_are_given_the_sequence() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[8] a, float[8] b) => (float[8] y) { y = Div(a, b) }'
    )
    sizes = []
    for options in ("", " -rounded-quotients=false"):
        image = lb.compile(model, f"vulkan{options}").modules[0].image
        assert isinstance(image, DeviceImage)
        sizes.append(len(image.code))
    assert sizes[0] < sizes[1]
