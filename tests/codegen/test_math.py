from __future__ import annotations

import math
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from landbridge.codegen.llvm.isa import isa_of
from landbridge.targets.target import Target
from landbridge.vm.code_image import LoadedImage

from .native import Array, build, call, pointwise

SIZE = 1 << 14
EXPANDED = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "erf", "sin", "cos"]
#: Those that clip their argument.
BOUNDED = ["exp", "exp2", "expm1", "tanh", "erf"]
BY_LANES = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cosh", "sinh", "tan"]
INTRINSICS = {
    "absf": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "roundeven": np.rint,
    "sqrt": np.sqrt,
    "trunc": np.trunc,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
NAMES = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atanh": "arctanh",
}
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-45, -1e-45, 1e-38, 3e38, -3e38, 0.5, -0.5, 0.625, 1e-10, -1e-10]
LIMITS = [88.7, 88.8, -87.4, -103, -104, -150, 128, -149.5, 33000.0, -1e9, math.pi, math.pi / 2]
SPECIAL = np.array([*EDGES, *LIMITS], np.float32)


def reference(name: str, x: Array) -> Array:
    """The function in f64."""
    if name == "erf":
        return np.array([math.erf(v) for v in x])
    return np.asarray(getattr(np, NAMES.get(name, name))(x.astype(np.float64)))


def ulps(got: Array, want: Array) -> Array:
    """Distance in units of the last place of f32; 0 where both are the same infinity or NaN."""
    rounded = want.astype(np.float32)
    unit = np.spacing(np.abs(np.where(np.isfinite(rounded), rounded, 1)).astype(np.float32))
    distance = np.abs(got.astype(np.float64) - want) / unit
    distance[(np.isnan(got) & np.isnan(want)) | (got == rounded)] = 0
    return np.where(np.isnan(distance), np.inf, distance)


def arguments() -> list[Array]:
    rng = np.random.default_rng(7)
    anything = rng.integers(0, 2**32, SIZE, dtype=np.uint32).view(np.float32).copy()
    scales = (1.0, 8.0, 100.0, 5000.0)
    around = [(rng.standard_normal(SIZE) * scale).astype(np.float32) for scale in scales]
    multiples = (np.arange(SIZE) * (np.pi / 2)).astype(np.float32)
    near_one = (1 + rng.standard_normal(SIZE) * 1e-2).astype(np.float32)
    anything[: SPECIAL.size] = SPECIAL
    return [anything, *around, multiples, near_one]


def unary(name: str, lanes: int) -> str:
    return pointwise(f"{name}_{lanes}", f"%r = math.{name} %a : {{T}}", {"a": "float32"}, "float32", SIZE, lanes)


@pytest.fixture(scope="module")
def image(target: Target) -> LoadedImage:
    texts = [unary(name, lanes) for name in EXPANDED for lanes in (0, 16)]
    texts += [unary(name, lanes) for name in [*BY_LANES, *INTRINSICS] for lanes in (0, 8)]
    two = dict.fromkeys("ab", "float32")
    for lanes in (0, 16):
        texts.append(pointwise(f"powf_{lanes}", "%r = math.powf %a, %b : {T}", two, "float32", SIZE, lanes))
    for name in ("atan2", "copysign"):
        texts.append(pointwise(name, f"%r = math.{name} %a, %b : {{T}}", two, "float32", SIZE))
    texts.append(pointwise("tanh_half", "%r = math.tanh %a : {T}", {"a": "float16"}, "float16", SIZE, 8))
    texts.append(pointwise("exp_double", "%r = math.exp %a : {T}", {"a": "float64"}, "float64", SIZE, 4))
    for name in ("absi", "ctlz", "cttz", "ctpop"):
        texts.append(pointwise(name, f"%r = math.{name} %a : {{T}}", {"a": "int32"}, "int32", SIZE))
    power = {"a": "float32", "b": "int32"}
    texts.append(pointwise("fpowi", "%r = math.fpowi %a, %b : {T}, {T:b}", power, "float32", SIZE, 8))
    return build("\n".join(texts), target)


def run(image: LoadedImage, name: str, *inputs: Array, dtype: str = "float32") -> Array:
    out = np.zeros(SIZE, dtype)
    call(image, name, *inputs, out, end=SIZE)
    return out


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", EXPANDED)
def test_expansions_are_within_four_ulp_everywhere(image: LoadedImage, name: str) -> None:
    for x in arguments():
        got = run(image, f"{name}_16", x)
        with np.errstate(all="ignore"):
            error = ulps(got, reference(name, x))
        worst = int(error.argmax())
        assert error[worst] < 4, f"{name}({x[worst]!r}) is {got[worst]!r}, {error[worst]:.1f} ulp off"
        np.testing.assert_array_equal(run(image, f"{name}_0", x), got, "scalars and vectors differ")


def test_expansions_hold_without_a_fused_multiply_add() -> None:
    plain = build("\n".join(unary(name, 16) for name in EXPANDED), Target({"kind": "llvm", "mcpu": "x86-64"}))
    for name in EXPANDED:
        for x in arguments():
            with np.errstate(all="ignore"):
                assert ulps(run(plain, f"{name}_16", x), reference(name, x)).max() < 4, name


def test_bounds_by_one_instruction_are_those_by_two() -> None:
    host = isa_of
    with patch("landbridge.codegen.llvm.image.isa_of", lambda *given: replace(host(*given), extrema=True)):
        bounded = build("\n".join(unary(name, 16) for name in BOUNDED), Target("llvm"))
    plain = build("\n".join(unary(name, 16) for name in BOUNDED), Target("llvm"))
    for name in BOUNDED:
        for x in arguments():
            np.testing.assert_array_equal(run(bounded, f"{name}_16", x), run(plain, f"{name}_16", x), name)


@pytest.mark.parametrize("name", ["expm1", "log1p", "tanh", "erf", "sin"])
def test_odd_functions_keep_the_sign_of_zero(image: LoadedImage, name: str) -> None:
    x = np.zeros(SIZE, np.float32)
    x[1::2] = -0.0
    np.testing.assert_array_equal(np.signbit(run(image, f"{name}_16", x)), np.signbit(x))


@pytest.mark.parametrize("name", BY_LANES)
def test_rare_functions_come_from_the_c_library(image: LoadedImage, name: str) -> None:
    x = arguments()[1]
    got = run(image, f"{name}_8", x)
    with np.errstate(all="ignore"):
        assert ulps(got, reference(name, x)).max() < 4
    np.testing.assert_array_equal(run(image, f"{name}_0", x), got)


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize("name", INTRINSICS)
def test_what_has_instructions_is_exact(image: LoadedImage, name: str, lanes: int) -> None:
    x = arguments()[2]
    x[: SPECIAL.size] = SPECIAL
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(image, f"{name}_{lanes}", x), INTRINSICS[name](x))


def test_power_has_every_special_case_of_c(image: LoadedImage) -> None:
    rng = np.random.default_rng(1)
    x = (rng.standard_normal(SIZE) * 8).astype(np.float32)
    y = (rng.standard_normal(SIZE) * 6).astype(np.float32)
    y[SIZE // 2 :] = np.rint(y[SIZE // 2 :])
    grid = np.array(np.meshgrid(SPECIAL, [*SPECIAL, 2, 3, -2, -3])).reshape(2, -1).astype(np.float32)
    x[: grid.shape[1]], y[: grid.shape[1]] = grid
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64))
        got = run(image, "powf_16", x, y)
        assert ulps(got, want).max() < 1
        is_number = ~np.isnan(got)
        np.testing.assert_array_equal(np.signbit(got)[is_number], np.signbit(want)[is_number])
    np.testing.assert_array_equal(run(image, "powf_0", x, y), got)


def test_binary_functions(image: LoadedImage) -> None:
    x, y = arguments()[1], arguments()[2]
    assert ulps(run(image, "atan2", x, y), np.arctan2(x.astype(np.float64), y)).max() < 4
    np.testing.assert_array_equal(run(image, "copysign", x, y), np.copysign(x, y))


def test_other_widths(image: LoadedImage) -> None:
    x = arguments()[1]
    half = x.astype(np.float16)
    want = np.tanh(half.astype(np.float32)).astype(np.float16)
    np.testing.assert_allclose(run(image, "tanh_half", half, dtype="float16"), want, rtol=1e-3)
    np.testing.assert_allclose(
        run(image, "exp_double", x.astype(np.float64), dtype="float64"), np.exp(x.astype(np.float64))
    )


def test_integer_functions(image: LoadedImage) -> None:
    x = np.arange(SIZE, dtype=np.int32) * 77777 - 5
    bits = [format(int(v) & 0xFFFFFFFF, "032b") for v in x]
    np.testing.assert_array_equal(run(image, "absi", x, dtype="int32"), np.abs(x))
    np.testing.assert_array_equal(run(image, "ctpop", x, dtype="int32"), [b.count("1") for b in bits])
    np.testing.assert_array_equal(run(image, "ctlz", x, dtype="int32"), [32 - len(b.lstrip("0")) for b in bits])
    np.testing.assert_array_equal(run(image, "cttz", x, dtype="int32"), [32 - len(b.rstrip("0")) for b in bits])
    base = arguments()[1]
    power = (np.arange(SIZE, dtype=np.int32) % 9) - 4
    want = base.astype(np.float64) ** power
    assert ulps(run(image, "fpowi", base, power), want).max() < 1
