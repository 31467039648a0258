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


#: Index arithmetic on counters and on a word of the call: ``y[i]`` is made of quotients, minima, choices and a product.
SHORT = """
builtin.module {
  func.func @short(%n : memref<1xi64, "global">, %y : memref<64xf32, "global">, %begin : index, %end : index) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %seven = arith.constant 7 : index
    %word = memref.load %n[%zero] : memref<1xi64, "global">
    %rows = arith.index_cast %word : i64 to index
    scf.for %i = %begin to %end step %one {
      %q = arith.divui %i, %seven : index
      %r = arith.remui %i, %rows : index
      %less = arith.minsi %q, %r : index
      %back = arith.subi %less, %seven : index
      %more = arith.maxsi %back, %zero : index
      %is = arith.cmpi slt, %back, %zero : index
      %chosen = arith.select %is, %q, %more : index
      %p = arith.muli %chosen, %rows : index
      %k = arith.index_cast %p : index to i64
      %f = arith.sitofp %k : i64 to f32
      memref.store %f, %y[%i] : memref<64xf32, "global">
    }
    func.return
  }
}
"""


@pytest.mark.parametrize("rows", [5, 40])
def test_the_same_indices(rows: int) -> None:
    def short(*given: object) -> object:
        return replace(isa_of(*given), address_bits=32)  # type: ignore[arg-type]

    with patch("landbridge.codegen.llvm.image.isa_of", short):
        image = build(SHORT, Target("llvm"))
    y = np.zeros(64, np.float32)
    call(image, "short", np.array([rows]), y, begin=0, end=64)
    less = [min(i // 7, i % rows) - 7 for i in range(64)]
    assert y.tolist() == [(i // 7 if back < 0 else max(back, 0)) * rows for i, back in enumerate(less)]


def test_index_arithmetic_has_the_bits_of_addresses() -> None:
    (function,) = parse(SHORT).body.block.ops
    text = print_functions([function], isa_of("armv7", 128, ("neon",)))  # type: ignore[list-item]
    body = text[text.index("urem") :]
    assert "udiv i32" in text and "urem i32" in text and "icmp slt i32" in body and "select i1" in body
    assert "smin.i64" not in body and "smax.i64" not in body
    # The word is cut where it is read, once.
    assert text.index("call i64 @llvm.smax.i64(i64") < text.index("phi i32")
