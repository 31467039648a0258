"""Loops count in the bits of an address where that has 32: the same iterations, and bounds that do not fit are cut."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from landbridge.codegen.llvm.isa import isa_of
from landbridge.codegen.llvm.print_ir import print_functions
from landbridge.targets import Target
from tests.codegen.native import build, call, parse

#: ``y[0]`` counts the iterations of a loop from ``begin`` to ``end`` in steps of ``step``, ``y[1]`` adds up what its
#: counter was.
COUNTED = """
builtin.module {{
  func.func @counted(%y : memref<2xf64, "global">, %begin : index, %end : index) {{
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %step = arith.constant {step} : index
    %none = arith.constant 0.0 : f64
    %a = arith.constant 1.0 : f64
    %n, %s = scf.for %i = %begin to %end step %step iter_args(%m = %none, %t = %none) -> (f64, f64) {{
      %k = arith.index_cast %i : index to i64
      %f = arith.sitofp %k : i64 to f64
      %o = arith.addf %m, %a : f64
      %u = arith.addf %t, %f : f64
      scf.yield %o, %u : f64, f64
    }}
    memref.store %n, %y[%zero] : memref<2xf64, "global">
    memref.store %s, %y[%one] : memref<2xf64, "global">
    func.return
  }}
}}
"""
#: A loop that never ends by its bound: it is the largest number of 64 bits.
LONG = """
builtin.module {
  func.func @long(%y : memref<8xf32, "global">, %begin : index, %end : index) {
    %one = arith.constant 1 : index
    %most = arith.constant 9223372036854775807 : index
    %a = arith.constant 1.0 : f32
    scf.for %i = %begin to %most step %one {
      memref.store %a, %y[%i] : memref<8xf32, "global">
    }
    func.return
  }
}
"""


@pytest.mark.parametrize("step", [1, 7])
@pytest.mark.parametrize(("begin", "end"), [(-9, 30), (5, 5), (5, 3), (-(1 << 40), -(1 << 31) + 40)])
def test_the_same_iterations(begin: int, end: int, step: int) -> None:
    def short(*given: object) -> object:
        return replace(isa_of(*given), address_bits=32)  # type: ignore[arg-type]

    with patch("landbridge.codegen.llvm.image.isa_of", short):
        image = build(COUNTED.format(step=step), Target("llvm"))
    y = np.zeros(2)
    call(image, "counted", y, begin=begin, end=end)
    counters = range(max(begin, -(1 << 31) + 1), end, step)  # from the nearest number that 32 bits have
    assert y.tolist() == [len(counters), sum(counters)]


def test_bounds_of_64_bits_are_cut() -> None:
    (function,) = parse(LONG).body.block.ops
    short = print_functions([function], isa_of("armv7", 128, ("neon",)))  # type: ignore[list-item]
    assert "phi i32" in short and "icmp slt i32" in short and ", 2147483647" in short
    long = print_functions([function], isa_of("aarch64", 128, ()))  # type: ignore[list-item]
    assert "phi i64" in long and "i32" not in long and ", 9223372036854775807" in long
