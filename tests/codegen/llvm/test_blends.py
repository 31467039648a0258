"""Shuffles that select each lane from one of two vectors: masks in registers where these are faster, the same lanes."""

from __future__ import annotations

import numpy as np
import pytest

from landbridge.codegen.llvm.isa import isa_of
from landbridge.codegen.llvm.print_ir import print_functions
from landbridge.instruction_sets.isa import Isa
from landbridge.targets import Target
from tests.codegen.native import build, call, parse

HALVES = [*range(8), *range(24, 32)]
PAIRS = [i + 16 * (i // 2 % 2) for i in range(16)]
WIDE = isa_of("x86_64", 512, ("avx512f", "avx512vl", "fma"))


def text_of(mask: list[int], element: str = "f32") -> str:
    lanes = len(mask)
    vector, memory = f"vector<{lanes}x{element}>", f"memref<{2 * lanes}x{element}>"
    return f"""
func.func @blend(%a: {memory}, %b: memref<{lanes}x{element}>, %begin: index, %end: index) {{
  %c0 = arith.constant 0 : index
  %second = arith.constant {lanes} : index
  %v = vector.load %a[%c0] : {memory}, {vector}
  %w = vector.load %a[%second] : {memory}, {vector}
  %r = vector.shuffle %v, %w {mask} : {vector}, {vector}
  vector.store %r, %b[%c0] : memref<{lanes}x{element}>, {vector}
  func.return
}}"""


@pytest.mark.parametrize("mask", [HALVES, PAIRS, [16, *range(1, 16)], [*HALVES[:-1], 15], list(range(16, 32))])
def test_lanes_are_those_of_the_shuffle(mask: list[int]) -> None:
    x, y = np.arange(32, dtype=np.float32), np.empty(16, np.float32)
    call(build(text_of(mask), Target("llvm")), "blend", x, y)
    assert y.tolist() == x[mask].tolist()


@pytest.mark.parametrize(
    ("mask", "element", "isa", "blends"),
    [
        (HALVES, "f32", WIDE, True),
        (PAIRS, "i32", WIDE, True),
        ([0, 9, 2, 11, 4, 13, 6, 15], "f64", WIDE, True),
        ([0, 9, 2, 11, 4, 13, 6, 15], "f32", WIDE, False),  # 256 bits
        (HALVES, "f32", Isa(512), False),
        (list(range(16)), "f32", WIDE, False),  # one vector alone
        ([8, *HALVES[1:]], "f32", WIDE, False),  # a lane that moves
    ],
)
def test_masks_select_lanes_that_stay(mask: list[int], element: str, isa: Isa, blends: bool) -> None:
    (function,) = parse(text_of(mask, element)).body.block.ops
    text = print_functions([function], isa)  # type: ignore[list-item]
    assert ("asm" in text and " select " in text) == blends
    assert ("shufflevector" in text) != blends
