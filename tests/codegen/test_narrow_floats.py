from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from landbridge.codegen.registry import codegen_for
from landbridge.targets.target import Target
from landbridge.vm.code_image import LoadedImage

from .native import Array, build, call, parse, pointwise

SIZE = 1 << 16
NARROW = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
WIDE = ["float32", "float64"]


def kernels() -> str:
    texts = []
    for narrow in NARROW:
        for lanes in (0, 8):
            for wide in WIDE:
                for name, op, source, result in (
                    (f"{narrow}_{wide}_{lanes}", "extf", narrow, wide),
                    (f"{wide}_{narrow}_{lanes}", "truncf", wide, narrow),
                ):
                    body = f'%r = "arith.{op}"(%a) : ({{T:a}}) -> {{T}}'
                    texts.append(pointwise(name, body, {"a": source}, result, SIZE, lanes))
            two = dict.fromkeys("ab", narrow)
            for op in ("addf", "mulf", "maximumf"):
                texts.append(
                    pointwise(f"{op}_{narrow}_{lanes}", f"%r = arith.{op} %a, %b : {{T}}", two, narrow, SIZE, lanes)
                )
        less = '%r = "arith.cmpf"(%a, %b) <{predicate = 4 : i64}> : ({T:a}, {T:b}) -> i1'
        texts.append(pointwise(f"less_{narrow}", less, dict.fromkeys("ab", narrow), "bool", SIZE))
        texts.append(pointwise(f"int_{narrow}", "%r = arith.sitofp %a : i32 to {T}", {"a": "int32"}, narrow, SIZE))
        texts.append(pointwise(f"{narrow}_int", "%r = arith.fptosi %a : {T:a} to i32", {"a": narrow}, "int32", SIZE))
    return "\n".join(texts)


@pytest.fixture(scope="module", params=["llvm", "llvm -mcpu=x86-64", "llvm -mcpu=x86-64-v3", "c", "c -mcpu=x86-64"])
def image(request: pytest.FixtureRequest) -> LoadedImage:
    """Loading fails where a conversion became a call into a compiler's own library."""
    return build(kernels(), Target(request.param))


def every(narrow: str) -> Array:
    """Every value of a 16-bit type."""
    return np.arange(SIZE, dtype=np.uint16).view(NARROW[narrow])


def same(got: Array, want: Array) -> None:
    """Equal bit for bit, but that any NaN is as good as another."""
    is_number = ~np.isnan(want.astype(np.float64))
    np.testing.assert_array_equal(np.isnan(got.astype(np.float64)), ~is_number)
    np.testing.assert_array_equal(got[is_number].view(np.uint8), want[is_number].view(np.uint8))


@pytest.mark.sample(7)
@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("narrow", NARROW)
def test_widening_is_exact(image: LoadedImage, narrow: str, wide: str, lanes: int) -> None:
    values, out = every(narrow), np.zeros(SIZE, wide)
    call(image, f"{narrow}_{wide}_{lanes}", values, out, end=SIZE)
    with np.errstate(all="ignore"):
        same(out, values.astype(wide))


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize("narrow", NARROW)
def test_narrowing_rounds_to_nearest_even(image: LoadedImage, narrow: str, lanes: int) -> None:
    kind = NARROW[narrow]
    with np.errstate(all="ignore"):
        values = every(narrow).astype(np.float32)
    finite = np.sort(values[np.isfinite(values)])
    ties = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
    rng = np.random.default_rng(0)
    anything = rng.integers(0, 2**32, SIZE, dtype=np.uint32).view(np.float32)
    above = np.nextafter(ties, np.float32(9))
    for x in (values, np.resize(ties, SIZE), np.resize(above, SIZE), anything):
        out = np.zeros(SIZE, kind)
        call(image, f"float32_{narrow}_{lanes}", np.ascontiguousarray(x), out, end=SIZE)
        with np.errstate(all="ignore"):
            same(out, x.astype(kind))


@pytest.mark.parametrize("lanes", [0, 8])
def test_narrowing_doubles_rounds_once(image: LoadedImage, lanes: int) -> None:
    with np.errstate(all="ignore"):
        values = every("float16").astype(np.float64)
    finite = np.sort(values[np.isfinite(values)])
    ties = (finite[1:] + finite[:-1]) / 2
    for x in (values, np.resize(ties, SIZE), np.resize(ties * (1 + 1e-13), SIZE), np.resize(ties * (1 - 1e-13), SIZE)):
        out = np.zeros(SIZE, np.float16)
        call(image, f"float64_float16_{lanes}", x, out, end=SIZE)
        with np.errstate(all="ignore"):
            same(out, x.astype(np.float16))


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize("narrow", NARROW)
def test_arithmetic_rounds_after_each_operation(image: LoadedImage, narrow: str, lanes: int) -> None:
    kind = NARROW[narrow]
    rng = np.random.default_rng(3)
    a = every(narrow)
    b = rng.permutation(a)
    with np.errstate(all="ignore"):
        wide = a.astype(np.float32), b.astype(np.float32)
        wants = {"addf": wide[0] + wide[1], "mulf": wide[0] * wide[1], "maximumf": np.maximum(*wide)}
        for op, want in wants.items():
            out = np.zeros(SIZE, kind)
            call(image, f"{op}_{narrow}_{lanes}", a, b, out, end=SIZE)
            zeros = want != 0 if op == "maximumf" else np.ones(SIZE, bool)
            same(out[zeros], want.astype(kind)[zeros])


@pytest.mark.parametrize("narrow", NARROW)
def test_comparisons_and_integers(image: LoadedImage, narrow: str) -> None:
    kind = NARROW[narrow]
    a = every(narrow)
    b = np.random.default_rng(4).permutation(a)
    less = np.zeros(SIZE, bool)
    call(image, f"less_{narrow}", a, b, less, end=SIZE)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(less, a.astype(np.float32) < b.astype(np.float32))
    integers = np.arange(SIZE, dtype=np.int32) - SIZE // 2
    out = np.zeros(SIZE, kind)
    call(image, f"int_{narrow}", integers, out, end=SIZE)
    same(out, integers.astype(np.float32).astype(kind))
    back = np.zeros(SIZE, np.int32)
    call(image, f"{narrow}_int", out, back, end=SIZE)
    np.testing.assert_array_equal(back, out.astype(np.float32).astype(np.int32))


def _kernels_of_few(extent: int, lanes: int) -> str:
    two = dict.fromkeys("ab", "bfloat16")
    return "\n".join(
        [
            pointwise("sum", "%r = arith.addf %a, %b : {T}", two, "bfloat16", extent, lanes),
            pointwise("ints", "%r = arith.addi %a, %b : {T}", dict.fromkeys("ab", "int16"), "int16", extent, lanes),
        ]
    )


@pytest.mark.sample(5)
@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v3", "icelake-server"])
@pytest.mark.parametrize(("extent", "lanes"), [(1, 0), (2, 0), (8, 8)])
def test_values_are_retained_as_their_bits(extent: int, lanes: int, cpu: str) -> None:
    """LLVM would pass an element by value, and keep it between blocks, by calls into a library."""
    made = codegen_for("llvm")(parse(_kernels_of_few(extent, lanes)), Target(f"llvm -mcpu={cpu}")).image
    assert not [name for name in made.imports if name.startswith("__")]
