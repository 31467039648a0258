from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from landbridge.targets.target import Target
from landbridge.vm.code_image import LoadedImage

from .native import Array, build, call, pointwise

SIZE = 64
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.5, -2.5, 1e-45], np.float32)


def floats(seed: int, dtype: str) -> Array:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(SIZE).astype(np.float32) * 10
    values[: SPECIAL.size] = np.roll(SPECIAL, seed)
    return values.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def integers(seed: int, dtype: str) -> Array:
    rng = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, SIZE, dtype=dtype, endpoint=True)
    values[:4] = info.min, info.max, 0, 1
    return values


INT_BINARY = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "minui": np.minimum,
    "maxui": np.maximum,
}
DIVISIONS = {
    "divsi": lambda a, b: np.trunc(a.astype(object) / b.astype(object)),
    "remsi": np.fmod,
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "divui": lambda a, b: a // b,
    "remui": lambda a, b: a % b,
    "ceildivui": lambda a, b: -(-a.astype(np.int64) // b.astype(np.int64)).astype(a.dtype),
}
FLOAT_BINARY = {
    "addf": lambda a, b: a + b,
    "subf": lambda a, b: a - b,
    "mulf": lambda a, b: a * b,
    "divf": lambda a, b: a / b,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
}
#: name -> (operation, source dtype, result dtype)
CASTS = {
    "extf": ("arith.extf", "float32", "float64"),
    "truncf": ("arith.truncf", "float64", "float32"),
    "half": ("arith.extf", "float16", "float32"),
    "to_half": ("arith.truncf", "float32", "float16"),
    "brain": ("arith.extf", "bfloat16", "float32"),
    "to_brain": ("arith.truncf", "float32", "bfloat16"),
    "extsi": ("arith.extsi", "int8", "int32"),
    "extui": ("arith.extui", "uint8", "uint32"),
    "trunci": ("arith.trunci", "int64", "int16"),
    "sitofp": ("arith.sitofp", "int32", "float32"),
    "uitofp": ("arith.uitofp", "uint8", "float32"),
    "bool_to_int": ("arith.extui", "bool", "int64"),
    "bool_to_float": ("arith.uitofp", "bool", "float32"),
}


def dtype_of(op: str) -> str:
    return "uint32" if "ui" in op else "int32"


@pytest.fixture(scope="module")
def image(target: Target) -> LoadedImage:
    texts = []
    for lanes, mark in ((0, "s"), (16, "v")):
        for op in {**INT_BINARY, **DIVISIONS}:
            inputs = dict.fromkeys("ab", dtype_of(op))
            texts.append(
                pointwise(f"{op}_{mark}", f"%r = arith.{op} %a, %b : {{T}}", inputs, dtype_of(op), SIZE, lanes)
            )
        for op in FLOAT_BINARY:
            inputs = dict.fromkeys("ab", "float32")
            texts.append(pointwise(f"{op}_{mark}", f"%r = arith.{op} %a, %b : {{T}}", inputs, "float32", SIZE, lanes))
        # xdsl's own text of comparisons and select knows scalar conditions only.
        mask = "vector<16xi1>" if lanes else "i1"
        compare = '"arith.{op}"(%a, %b) <{{predicate = {p} : i64}}> : ({{T:a}}, {{T:b}}) -> {mask}'
        body = (
            f"%c = {compare.format(op='cmpf', p=11, mask=mask)}\n"
            f'%r = "arith.select"(%c, %a, %b) : ({mask}, {{T}}, {{T}}) -> {{T}}'
        )
        texts.append(pointwise(f"select_{mark}", body, dict.fromkeys("ab", "float32"), "float32", SIZE, lanes))
        body = f"%r = {compare.format(op='cmpi', p=2, mask=mask)}"
        texts.append(pointwise(f"less_{mark}", body, dict.fromkeys("ab", "int32"), "bool", SIZE, lanes))
    for name, (op, source, result) in CASTS.items():
        for lanes in (0, 8):
            body = f'%r = "{op}"(%a) : ({{T:a}}) -> {{T}}'
            texts.append(pointwise(f"cast_{name}_{lanes}", body, {"a": source}, result, SIZE, lanes))
    texts.append(pointwise("clamp_s", "%r = arith.fptosi %a : f32 to i8", {"a": "float32"}, "int8", SIZE))
    texts.append(pointwise("clamp_u", "%r = arith.fptoui %a : f32 to i8", {"a": "float32"}, "uint8", SIZE))
    texts.append(pointwise("negf", "%r = arith.negf %a : f32", {"a": "float32"}, "float32", SIZE))
    texts.append(pointwise("bits", "%r = arith.bitcast %a : f32 to i32", {"a": "float32"}, "int32", SIZE))
    for sign, zero in (("plus", "0.0"), ("minus", "-0.0"), ("two", "2.0")):
        for op in ("maximumf", "minimumf"):
            body = f"%z = arith.constant {zero} : f32\n%r = arith.{op} %a, %z : f32"
            texts.append(pointwise(f"{op}_{sign}", body, {"a": "float32"}, "float32", SIZE))
    texts.append(
        pointwise(
            "dense",
            "%k = arith.constant dense<[1, -2, 3, 4]> : vector<4xi32>\n%r = arith.addi %a, %k : {T}",
            {"a": "int32"},
            "int32",
            SIZE,
            4,
        )
    )
    return build("\n".join(texts), target)


def run(image: LoadedImage, name: str, result: str, *inputs: Array) -> Array:
    out = np.zeros(SIZE, ml_dtypes.bfloat16 if result == "bfloat16" else result)
    call(image, name, *inputs, out, end=SIZE)
    return out


@pytest.mark.sample(18)
@pytest.mark.parametrize("mark", ["s", "v"])
@pytest.mark.parametrize("op", INT_BINARY)
def test_integer_operations(image: LoadedImage, op: str, mark: str) -> None:
    a, b = integers(1, dtype_of(op)), integers(2, dtype_of(op))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run(image, f"{op}_{mark}", dtype_of(op), a, b), INT_BINARY[op](a, b))


@pytest.mark.parametrize("mark", ["s", "v"])
@pytest.mark.parametrize("op", DIVISIONS)
def test_divisions(image: LoadedImage, op: str, mark: str) -> None:
    a = integers(1, dtype_of(op))
    b = integers(2, dtype_of(op)) >> np.array(20, dtype_of(op))
    b[b == 0] = 7
    a[:2] = 21, 20
    b[a == np.iinfo(a.dtype).min] = 3
    np.testing.assert_array_equal(run(image, f"{op}_{mark}", dtype_of(op), a, b), DIVISIONS[op](a, b).astype(a.dtype))


@pytest.mark.parametrize("mark", ["s", "v"])
@pytest.mark.parametrize("op", FLOAT_BINARY)
def test_float_operations(image: LoadedImage, op: str, mark: str) -> None:
    a, b = floats(0, "float32"), floats(3, "float32")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(image, f"{op}_{mark}", "float32", a, b), FLOAT_BINARY[op](a, b))


@pytest.mark.parametrize("op", ["maximumf", "minimumf"])
@pytest.mark.parametrize(("sign", "value"), [("plus", 0.0), ("minus", -0.0), ("two", 2.0)])
def test_extremum_against_a_constant_keeps_nan_and_signs_of_zero(
    image: LoadedImage, op: str, sign: str, value: float
) -> None:
    a = floats(0, "float32")
    got = run(image, f"{op}_{sign}", "float32", a)
    wins = (a < value) if op == "maximumf" else (a > value)
    want = np.where(wins, np.float32(value), a)
    if value == 0:
        negative = np.signbit(a) if op == "minimumf" else ~np.signbit(a)
        want = np.where(a == 0, np.where(negative, a, np.float32(value)), want)
    np.testing.assert_array_equal(got, want)
    is_number = ~np.isnan(a)
    np.testing.assert_array_equal(np.signbit(got)[is_number], np.signbit(want)[is_number])


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize("name", CASTS)
def test_casts(image: LoadedImage, name: str, lanes: int) -> None:
    _, source, result = CASTS[name]
    if source == "bool":
        a: Array = np.arange(SIZE) % 3 == 0
    else:
        a = floats(1, source) if "float" in source else integers(1, source)
    with np.errstate(all="ignore"):
        want = a.astype(ml_dtypes.bfloat16 if result == "bfloat16" else result)
    np.testing.assert_array_equal(run(image, f"cast_{name}_{lanes}", result, a).view(np.uint8), want.view(np.uint8))


def test_float_to_integer_saturates(image: LoadedImage) -> None:
    a = np.zeros(SIZE, np.float32)
    a[:8] = 1.9, -1.9, 300.0, -300.0, np.inf, -np.inf, np.nan, 127.5
    assert run(image, "clamp_s", "int8", a)[:8].tolist() == [1, -1, 127, -128, 127, -128, 0, 127]
    assert run(image, "clamp_u", "uint8", a)[:8].tolist() == [1, 0, 255, 0, 255, 0, 0, 127]


@pytest.mark.parametrize("mark", ["s", "v"])
def test_compare_and_select(image: LoadedImage, mark: str) -> None:
    a, b = floats(0, "float32"), floats(3, "float32")
    unordered_less = ~(a >= b)
    np.testing.assert_array_equal(run(image, f"select_{mark}", "float32", a, b), np.where(unordered_less, a, b))
    x, y = integers(1, "int32"), integers(2, "int32")
    np.testing.assert_array_equal(run(image, f"less_{mark}", "bool", x, y), x < y)


def test_negation_bits_and_dense_constants(image: LoadedImage) -> None:
    a, k = floats(0, "float32"), integers(1, "int32")
    is_number = ~np.isnan(a)
    np.testing.assert_array_equal(
        run(image, "negf", "float32", a)[is_number].view(np.uint32), (-a)[is_number].view(np.uint32)
    )
    np.testing.assert_array_equal(run(image, "bits", "int32", a), a.view(np.int32))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run(image, "dense", "int32", k), k + np.tile([1, -2, 3, 4], 16).astype(np.int32))
