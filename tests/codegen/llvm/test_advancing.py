"""Innermost loops carry pointers where accesses advance them: the same elements, and vectors in pairs while there are
registers.
"""

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


def _product(sums: int, stored: str = "") -> func.FuncOp:
    """A loop that adds two adjacent vectors of ``w`` to each of ``sums`` vectors; ``stored`` stands between the two."""
    kind = "vector<4xf32>"
    names = ", ".join(f"%s{i}" for i in range(sums))
    first = "\n".join(f"%p{i} = arith.addf %s{i}, %a : {kind}" for i in range(sums))
    second = "\n".join(f"%q{i} = arith.addf %p{i}, %b : {kind}" for i in range(sums))
    stores = "\n".join(
        f'%k{i} = arith.constant {4 * i} : index\nvector.store %r#{i}, %y[%k{i}] : memref<128xf32, "global">, {kind}'
        for i in range(sums)
    )
    text = f"""
builtin.module {{
  func.func @product(%w : memref<800xf32, "global">, %y : memref<128xf32, "global">, %begin : index, %end : index) {{
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    %eight = arith.constant 8 : index
    %none = arith.constant dense<0.0> : {kind}
    %r:{sums} = scf.for %i = %begin to %end step %one iter_args({", ".join(f"%s{i} = %none" for i in range(sums))})
        -> ({", ".join([kind] * sums)}) {{
      %at = arith.muli %i, %eight : index
      %a = vector.load %w[%at] : memref<800xf32, "global">, {kind}
      {first}
      {stored}
      %next = arith.addi %at, %four : index
      %b = vector.load %w[%next] : memref<800xf32, "global">, {kind}
      {second}
      scf.yield {names.replace("%s", "%q")} : {", ".join([kind] * sums)}
    }}
    {stores}
    func.return
  }}
}}
"""
    (function,) = parse(text).body.block.ops
    assert isinstance(function, func.FuncOp)
    return function


def _text(function: func.FuncOp, isa: str = "armv7") -> str:
    return print_functions([function], isa_of(isa, 128, ("neon",) if isa == "armv7" else ()))


def test_pairs_of_vectors() -> None:
    text = _text(_product(14))
    assert text.count("call {<4 x float>, <4 x float>} @llvm.arm.neon.vld1x2.v4f32.p0(") == 1
    assert "load <4 x float>" not in text and text.count("phi ptr") == 1


def test_no_pairs_without_registers() -> None:
    text = _text(_product(15))
    assert "vld1x2" not in text and text.count("load <4 x float>") == 2


def test_no_pairs_around_a_store() -> None:
    stored = 'vector.store %a, %y[%at] : memref<128xf32, "global">, vector<4xf32>'
    text = _text(_product(2, stored))
    assert "vld1x2" not in text and text.count("load <4 x float>") == 2


@pytest.mark.parametrize("isa", ["x86_64", "aarch64", "riscv64"])
def test_others_carry_no_pointers(isa: str) -> None:
    assert "phi ptr" not in _text(_product(2), isa)
