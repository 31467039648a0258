"""Which instructions ``lb.byte_dot`` becomes on which CPU, and that each way of it gives the same."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from landbridge.codegen.llvm.isa import isa_of
from landbridge.codegen.llvm.print_ir import print_functions
from landbridge.targets import Target
from tests.codegen.native import build, call, parse
from tests.codegen.test_byte_dot import SIZE, byte_dots, text_of, words

AVX2 = ("avx", "avx2")
AVX512 = (*AVX2, "avx512f", "avx512bw", "avx512vl")


@pytest.mark.parametrize(
    ("isa", "flags", "lanes", "stem"),
    [
        ("x86_64", (*AVX512, "avx512_vnni"), 16, "vpdpbusd.512"),
        ("x86_64", (*AVX512, "avx512_vnni"), 4, "vpdpbusd.128"),
        ("x86_64", (*AVX2, "avx_vnni"), 8, "vpdpbusd.256"),
        ("x86_64", AVX512, 16, "pmaddw.d.512"),
        ("x86_64", AVX2, 8, "avx2.pmadd.wd"),
        ("x86_64", AVX2, 16, "mul <16 x i32>"),
        ("x86_64", (), 4, "sse2.pmadd.wd"),
        ("aarch64", ("asimddp", "i8mm"), 4, "neon.usdot"),
        ("aarch64", ("asimddp",), 4, "neon.sdot"),
        ("aarch64", (), 4, "neon.saddlp"),
        ("aarch64", (), 8, "mul <8 x i32>"),
    ],
)
def test_what_the_cpu_has_is_used(isa: str, flags: tuple[str, ...], lanes: int, stem: str) -> None:
    (function,) = parse(text_of("dots", lanes)).body.block.ops
    text = print_functions([function], isa_of(isa, 32 * lanes, flags))  # type: ignore[list-item]
    assert stem in text
    assert ("x i32> %" in "".join(line for line in text.splitlines() if " mul " in line)) == stem.startswith("mul")


@pytest.mark.parametrize("dots", [0, 512])
@pytest.mark.parametrize("pairs", [0, 512])
def test_each_way_gives_the_same(dots: int, pairs: int) -> None:
    def without(*given: object) -> object:
        isa = isa_of(*given)  # type: ignore[arg-type]
        return replace(isa, dot_bits=min(isa.dot_bits, dots), pair_bits=min(isa.pair_bits, pairs))

    with patch("landbridge.codegen.llvm.image.isa_of", without):
        image = build("\n".join(text_of(f"dots_{lanes}", lanes) for lanes in (4, 8, 16)), Target("llvm"))
    a, x, y = np.arange(SIZE, dtype=np.int32), words(1), words(2)
    for lanes in (4, 8, 16):
        found = np.empty(SIZE, np.int32)
        call(image, f"dots_{lanes}", a, x, y, found, end=SIZE)
        np.testing.assert_array_equal(found, a + byte_dots(x, y))
