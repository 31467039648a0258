"""Powers of 2 by one instruction where there is one: the same numbers as by two products, wherever they stand."""

from __future__ import annotations

import numpy as np
import pytest

from landbridge.codegen.llvm.isa import isa_of
from landbridge.codegen.llvm.print_ir import print_functions
from landbridge.instruction_sets.isa import Isa
from landbridge.targets import Target
from tests.codegen.native import build, call, parse, pointwise

SIZE = 1 << 14
FUNCTIONS = ["exp", "exp2", "tanh", "erf"]


def text_of(name: str, lanes: int, size: int = SIZE) -> str:
    return pointwise(f"{name}_{lanes}", f"%r = math.{name} %a : {{T}}", {"a": "float32"}, "float32", size, lanes)


@pytest.mark.parametrize("denormals", ["keep", "flush"])
def test_lanes_are_same(denormals: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(0, 2**32, SIZE, dtype=np.uint32).view(np.float32).copy()
    x[::2] = rng.uniform(-160, 140, SIZE // 2)  # many of whose powers are denormal
    texts = [text_of(name, lanes) for name in FUNCTIONS for lanes in (0, 2, 4, 8, 16)]
    image = build("\n".join(texts), Target(f"llvm -denormals={denormals}"))
    for name in FUNCTIONS:
        found = [np.empty_like(x) for _ in range(5)]
        for y, lanes in zip(found, (0, 2, 4, 8, 16), strict=True):
            call(image, f"{name}_{lanes}", x, y, end=SIZE)
        for y in found[1:]:
            np.testing.assert_array_equal(y, found[0])
        assert np.isnan(found[0][np.isnan(x)]).all()


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_the_instruction_is_taken_where_there_is_one(lanes: int) -> None:
    (function,) = parse(text_of("exp", lanes, 16)).body.block.ops
    flags = ("avx512f", "avx512vl", "fma")
    assert f"scalef.ps.{32 * lanes}" in print_functions([function], isa_of("x86_64", 512, flags))  # type: ignore[list-item]
    assert "scalef" not in print_functions([function], Isa(256))  # type: ignore[list-item]


def test_none_is_of_one_or_two_lanes() -> None:
    for lanes in (0, 2):
        (function,) = parse(text_of("exp", lanes, 16)).body.block.ops
        assert "scalef" not in print_functions([function], Isa(512, scale_bits=512))  # type: ignore[list-item]
