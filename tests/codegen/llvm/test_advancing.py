"""Innermost loops carry pointers where accesses advance them: the same elements, and one pointer for adjacent ones."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from xdsl.dialects import func

from landbridge.codegen.llvm.isa import isa_of
from landbridge.codegen.llvm.print_ir import print_functions
from landbridge.targets import Target
from tests.codegen.native import build, call, parse

#: A loop with accesses before and behind each other, in a branch, by its counter times a word of the caller, and in
#: place; ``y[i * 4 + 64 * j]`` becomes what it was plus five elements of ``x``, and ``y`` of the next one plus 1.
WALK = """
builtin.module {
  func.func @walk(%x : memref<4096xf32, "global">, %n : memref<2xindex, "global">, %y : memref<512xf32, "global">,
                  %begin : index, %end : index) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %three = arith.constant 3 : index
    %four = arith.constant 4 : index
    %seven = arith.constant 7 : index
    %row = arith.constant 64 : index
    %unit = arith.constant 1.0 : f32
    %stride = memref.load %n[%zero] : memref<2xindex, "global">
    %limit = memref.load %n[%one] : memref<2xindex, "global">
    scf.for %j = %zero to %three step %one {
      %jr = arith.muli %j, %row : index
      scf.for %i = %begin to %end step %three {
        %by = arith.muli %i, %stride : index
        %from = arith.addi %by, %jr : index
        %behind = arith.addi %from, %seven : index
        %back = arith.subi %from, %three : index
        %a = memref.load %x[%behind] : memref<4096xf32, "global">
        %b = memref.load %x[%back] : memref<4096xf32, "global">
        %c = memref.load %x[%i] : memref<4096xf32, "global">
        %moved = arith.addi %i, %j : index
        %far = arith.muli %moved, %stride : index
        %d = memref.load %x[%far] : memref<4096xf32, "global">
        %i4 = arith.muli %i, %four : index
        %at = arith.addi %i4, %jr : index
        %old = memref.load %y[%at] : memref<512xf32, "global">
        %ab = arith.addf %a, %b : f32
        %cd = arith.addf %c, %d : f32
        %abcd = arith.addf %ab, %cd : f32
        %less = arith.cmpi slt, %i, %limit : index
        %more = scf.if %less -> (f32) {
          %e = memref.load %x[%at] : memref<4096xf32, "global">
          %f = arith.addf %e, %abcd : f32
          scf.yield %f : f32
        } else {
          scf.yield %abcd : f32
        }
        %new = arith.addf %old, %more : f32
        memref.store %new, %y[%at] : memref<512xf32, "global">
        %next = arith.addi %at, %one : index
        %other = memref.load %y[%next] : memref<512xf32, "global">
        %grown = arith.addf %other, %unit : f32
        memref.store %grown, %y[%next] : memref<512xf32, "global">
      }
    }
    func.return
  }
}
"""


def _walked(x: np.ndarray, stride: int, limit: int, y: np.ndarray, counters: range) -> None:
    for j in range(3):
        for i in counters:
            start, at = i * stride + 64 * j, i * 4 + 64 * j
            more = x[start + 7] + x[start - 3] + (x[i] + x[(i + j) * stride])
            y[at] += more + x[at] if i < limit else more
            y[at + 1] += 1


@pytest.mark.parametrize("address_bits", [32, 64])
@pytest.mark.parametrize(
    ("begin", "end", "stride", "limit"), [(1, 40, 5, 17), (4, 5, 9, 0), (3, 3, 5, 1), (2, 33, 7, 99)]
)
def test_the_same_elements(address_bits: int, begin: int, end: int, stride: int, limit: int) -> None:
    def advancing(*given: object) -> object:
        return replace(isa_of(*given), address_bits=address_bits, advances=True)  # type: ignore[arg-type]

    with patch("landbridge.codegen.llvm.image.isa_of", advancing):
        image = build(WALK, Target("llvm"))
    x = np.arange(4096, dtype=np.float32) % 51  # sums of them are exact
    y, expected = np.zeros(512, np.float32), np.zeros(512, np.float32)
    call(image, "walk", x, np.array([stride, limit]), y, begin=begin, end=end)
    _walked(x, stride, limit, expected, range(begin, end, 3))
    np.testing.assert_array_equal(y, expected)


#: A loop that adds up two adjacent vectors of ``w``.
PRODUCT = """
builtin.module {
  func.func @product(%w : memref<800xf32, "global">, %y : memref<4xf32, "global">, %begin : index, %end : index) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    %eight = arith.constant 8 : index
    %none = arith.constant dense<0.0> : vector<4xf32>
    %r = scf.for %i = %begin to %end step %one iter_args(%s = %none) -> (vector<4xf32>) {
      %at = arith.muli %i, %eight : index
      %a = vector.load %w[%at] : memref<800xf32, "global">, vector<4xf32>
      %p = arith.addf %s, %a : vector<4xf32>
      %next = arith.addi %at, %four : index
      %b = vector.load %w[%next] : memref<800xf32, "global">, vector<4xf32>
      %q = arith.addf %p, %b : vector<4xf32>
      scf.yield %q : vector<4xf32>
    }
    vector.store %r, %y[%zero] : memref<4xf32, "global">, vector<4xf32>
    func.return
  }
}
"""


def _text(isa: str, flags: tuple[str, ...] = ()) -> str:
    (function,) = parse(PRODUCT).body.block.ops
    assert isinstance(function, func.FuncOp)
    return print_functions([function], isa_of(isa, 128, flags))


def test_adjacent_vectors_share_a_pointer() -> None:
    text = _text("armv7", ("neon",))
    assert text.count("phi ptr") == 1 and text.count("load <4 x float>") == 2
    # The second access is 16 bytes behind the first one, and the next iteration 16 behind that.
    assert text.count("i64 16\n") == 1 and text.count("i32 16\n") == 1


@pytest.mark.parametrize("isa", ["x86_64", "aarch64", "riscv64", "armv7"])
def test_others_carry_no_pointers(isa: str) -> None:
    assert "phi ptr" not in _text(isa)  # of ARMv7 those without NEON
