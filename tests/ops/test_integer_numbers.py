"""Integers against Python's and int64's: bits, remainders, quantized products; exact on every kind of target."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import onnxruntime
import pytest

from landbridge.ops.accuracy import accuracy_of
from tests.ops.elementwise_models import KINDS
from tests.ops.float_grids import FLOATS
from tests.ops.one_node import Array, one_node, run_node, takes

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
COUNT = 4099  # no multiple of any vector's lanes


def dense(dtype: str, count: int = COUNT, seed: int = 0) -> Array:
    """Numbers of all widths, both signs and both ends."""
    rng, info = np.random.default_rng(seed), np.iinfo(dtype)
    bits = rng.integers(0, 1 << 64, count, np.uint64) >> rng.integers(0, 64, count).astype(np.uint64)
    signed = np.where(rng.random(count) < 0.5, bits, ~bits).astype(dtype)
    ends = np.array([info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2], dtype)
    signed[rng.choice(count, min(count // 2, 40), replace=False)] = np.resize(ends, min(count // 2, 40))
    return signed


def remainder(a: int, b: int) -> int:
    return 0 if b == 0 else a % b


def signed_remainder(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1)


#: Operator, attributes, and what one number is of Python's.
ELEMENTWISE: dict[str, tuple[str, dict[str, Any], Callable[..., int]]] = {
    "BitwiseAnd": ("BitwiseAnd", {}, lambda a, b: a & b),
    "BitwiseOr": ("BitwiseOr", {}, lambda a, b: a | b),
    "BitwiseXor": ("BitwiseXor", {}, lambda a, b: a ^ b),
    "BitwiseNot": ("BitwiseNot", {}, lambda a: ~a),
    "BitShift left": ("BitShift", {"direction": "LEFT"}, lambda a, b: a << b if b < 64 else 0),
    "BitShift right": ("BitShift", {"direction": "RIGHT"}, lambda a, b: a >> b if b < 64 else 0),
    "Mod": ("Mod", {"fmod": 0}, remainder),
    "Mod fmod": ("Mod", {"fmod": 1}, signed_remainder),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("name", "dtype", "kind"),
    [(n, d, k) for n, d, k in product(ELEMENTWISE, INTEGERS, KINDS) if takes(ELEMENTWISE[n][0], d)],
)
def test_bits_and_remainders(name: str, dtype: str, kind: str) -> None:
    op, attributes, meaning = ELEMENTWISE[name]
    arrays = [dense(dtype, seed=s) for s in range(1 if op == "BitwiseNot" else 2)]
    if op == "BitShift":
        arrays[1] = np.where(arrays[1] % 4 == 0, arrays[1], arrays[1] % (np.iinfo(dtype).bits + 3)).astype(dtype)
    (found,) = run_node(op, arrays, target=kind, **attributes)
    whole = [meaning(*pair) & (1 << 64) - 1 for pair in zip(*(a.tolist() for a in arrays), strict=True)]
    np.testing.assert_array_equal(found, np.array(whole, np.uint64).astype(dtype))


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("op", "reduction", "dtype", "kind"),
    [
        *product(("ScatterElements", "ScatterND"), ("add", "mul", "max", "min"), ("int32", "int64", "uint8"), KINDS),
    ],
)
def test_scattered_integers_wrap(op: str, reduction: str, dtype: str, kind: str) -> None:
    rng = np.random.default_rng(7)
    x, updates = dense(dtype, 9 * 5, 1).reshape(9, 5), dense(dtype, 40 * 5, 2).reshape(40, 5)
    flat = rng.integers(-9, 9, (40, 5) if op == "ScatterElements" else (40, 1))
    want, apply = x.copy(), {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction]
    places = (flat, np.arange(5)[None]) if op == "ScatterElements" else (flat[:, 0],)
    apply.at(want, places, updates)
    (found,) = run_node(op, [x, flat, updates], target=kind, opset=18, reduction=reduction)
    np.testing.assert_array_equal(found, want)


def convolved(x: Array, w: Array) -> Array:
    """3 x 3 in int64, padded by 1."""
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w)


def operands(op: str, a: str, b: str, columns: bool) -> tuple[list[Array], Array]:
    """Quantized inputs with zero points, and their product in int64. ``columns``: a zero point for each column."""
    if "Conv" in op:
        x, w = dense(a, 2 * 5 * 49, 1).reshape(2, 5, 7, 7), dense(b, 6 * 45, 2).reshape(6, 5, 3, 3)
        shape, product_of = (-1, 1, 1, 1), convolved
    else:
        x, w = dense(a, 9 * 70, 1).reshape(9, 70), dense(b, 70 * 11, 2).reshape(70, 11)
        shape, product_of = (1, -1), np.matmul
    x_zero = dense(a, 9, 3)[8:].reshape(())
    w_zero = dense(b, 11 if "MatMul" in op else 6, 4) if columns else dense(b, 9, 5)[7:8].reshape(())
    centered = w.astype(np.int64) - (w_zero.reshape(shape) if columns else w_zero).astype(np.int64)
    return [x, x_zero, w, w_zero], product_of(x.astype(np.int64) - x_zero, centered)


PADS = {"pads": [1, 1, 1, 1]}
BYTES = [(a, b) for a in ("uint8", "int8") for b in ("uint8", "int8")]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("op", "dtypes", "columns", "kind"),
    list(product(("MatMulInteger", "ConvInteger"), BYTES, (False, True), KINDS)),
)
def test_integer_products(op: str, dtypes: tuple[str, str], columns: bool, kind: str) -> None:
    (x, x_zero, w, w_zero), want = operands(op, *dtypes, columns)
    attributes = PADS if "Conv" in op else {}
    (found,) = run_node(op, [x, w, x_zero, w_zero], {1, 2, 3}, target=kind, **attributes)
    np.testing.assert_array_equal(found, want)


def saturated(x: Array, dtype: str) -> Array:
    """``x`` rounded, halves to even, and kept within ``dtype``."""
    return np.clip(np.rint(x), np.iinfo(dtype).min, np.iinfo(dtype).max)


def off_by_ties(found: Array, scaled: Array, zero: int, dtype: str) -> Array:
    """Where a quantized result is neither that of the true value, nor of one within a few eps of f32 of it."""
    near = np.abs(scaled) * 4e-7
    between = (saturated(np.rint(scaled + s * near) + zero, dtype) for s in (-1, 1))
    low, high = between
    return (found < low) | (found > high)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("op", "dtypes", "columns", "kind"),
    list(product(("QLinearMatMul", "QLinearConv"), BYTES, (False, True), KINDS)),
)
@pytest.mark.parametrize("powers", [False, True])
def test_quantized_products(op: str, dtypes: tuple[str, str], columns: bool, powers: bool, kind: str) -> None:
    a, b = dtypes
    assert accuracy_of("", op, 21) is not None
    (x, x_zero, w, w_zero), total = operands(op, a, b, columns)
    rng = np.random.default_rng(3)
    x_scale = np.array(0.0625 if powers else 0.0371, np.float32)
    w_scale = np.full(w_zero.shape, 0.5, np.float32) if powers else rng.uniform(0.01, 0.2, w_zero.shape)
    y_scale, y_zero = np.array(128 if powers else 9.7, np.float32), np.array(100 if a == "uint8" else -7, a)
    w_scale = np.asarray(w_scale, np.float32)
    arrays = [x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero]
    if op == "QLinearConv":
        arrays.append(rng.integers(-5000, 5000, 6).astype(np.int32))
        total = total + arrays[-1].reshape(-1, 1, 1)
    column = w_scale.reshape((-1, 1, 1) if op == "QLinearConv" else (1, -1)) if columns else w_scale
    scaled = total * x_scale.astype(float) * column.astype(float) / float(y_scale)
    attributes = PADS if "Conv" in op else {}
    (found,) = run_node(op, arrays, range(1, len(arrays)), target=kind, **attributes)
    assert found.dtype == a
    if powers:  # products of powers of 2 have no error: ties go to even, everywhere
        np.testing.assert_array_equal(found, saturated(np.rint(scaled) + int(y_zero), a))
    assert not off_by_ties(found.astype(float), scaled, int(y_zero), a).any()


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("values", ["both signs", "positive", "negative", "small", "large", "zeros", "halves"])
def test_dynamic_quantization(values: str, kind: str) -> None:
    rng = np.random.default_rng(4)
    spread = (rng.choice([-1, 1], 999) * np.exp2(rng.uniform(-12, 3, 999))).astype(np.float32)
    x = {
        "both signs": spread,
        "positive": np.abs(spread) + 1,
        "negative": -np.abs(spread),
        "small": spread * np.float32(1e-30),
        "large": spread * np.float32(1e30),
        "zeros": np.zeros(999, np.float32),
        "halves": np.resize(np.arange(511, dtype=np.float32) / 2, 999),  # the scale is 1
    }[values].astype(np.float32)
    y, scale, zero = run_node("DynamicQuantizeLinear", [x], outputs=3, target=kind)
    low, high = min(0.0, float(x.min())), max(0.0, float(x.max()))
    np.testing.assert_allclose(scale, (high - low) / 255, rtol=2.4e-7)
    if values == "zeros":  # no scale at all: any zero point stands for 0
        assert (y == zero).all()
        return
    assert not off_by_ties(np.asarray(zero, float), np.array(-low / float(scale)), 0, "uint8").any()
    want = saturated(np.rint(x / scale).astype(float) + int(zero), "uint8")
    np.testing.assert_array_equal(y, want)
    model = one_node("DynamicQuantizeLinear", [x], outputs=3)
    theirs = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x0": x})
    np.testing.assert_array_equal(theirs[2], zero)
    assert np.abs(theirs[0].astype(int) - y).max() <= 1


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", ["float16", "bfloat16", "float32"])
def test_integers_are_quantized_by_narrow_scales(scale: str, kind: str) -> None:
    # beyond what a float16 holds: 65504
    x, step = np.array([0, 3, -3, 5, 70_000, -70_000, 1_000_000, 16_000_000], np.int32), 2.0**10
    arrays = [x, np.array(step).astype(FLOATS[scale]), np.array(3, np.int16)]
    (found,) = run_node("QuantizeLinear", arrays, {1, 2}, target=kind, opset=23)
    np.testing.assert_array_equal(found, saturated(np.rint(x / step) + 3, "int16"))
