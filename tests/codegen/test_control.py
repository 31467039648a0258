from __future__ import annotations

import numpy as np
import pytest

from landbridge.errors import CodegenError
from landbridge.targets.target import Target
from landbridge.vm.code_image import LoadedImage

from .native import build, call

KERNELS = """
func.func @sum(%a: memref<16xf32>, %b: memref<2xf32>, %begin: index, %end: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %s, %p = scf.for %i = %begin to %end step %c1 iter_args(%x = %zero, %y = %one) -> (f32, f32) {
    %v = memref.load %a[%i] : memref<16xf32>
    %u = arith.addf %x, %v : f32
    %w = arith.mulf %y, %v : f32
    scf.yield %u, %w : f32, f32
  }
  memref.store %s, %b[%c0] : memref<2xf32>
  memref.store %p, %b[%c1] : memref<2xf32>
  func.return
}
func.func @fibonacci(%b: memref<1xi64>, %begin: index, %end: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %x, %y = scf.for %i = %begin to %end step %c1 iter_args(%p = %zero, %q = %one) -> (i64, i64) {
    %r = arith.addi %p, %q : i64
    scf.yield %q, %r : i64, i64
  }
  memref.store %x, %b[%c0] : memref<1xi64>
  func.return
}
func.func @steps(%a: memref<16xi32>, %begin: index, %end: index) {
  %c5 = arith.constant 5 : index
  %k = arith.constant 1 : i32
  scf.for %i = %begin to %end step %c5 {
    memref.store %k, %a[%i] : memref<16xi32>
  }
  func.return
}
func.func @clip(%a: memref<16xf32>, %b: memref<16xf32>, %begin: index, %end: index) {
  %c1 = arith.constant 1 : index
  %low = arith.constant -1.0 : f32
  %high = arith.constant 1.0 : f32
  scf.for %i = %begin to %end step %c1 {
    %x = memref.load %a[%i] : memref<16xf32>
    %under = arith.cmpf olt, %x, %low : f32
    %y = scf.if %under -> (f32) {
      scf.yield %low : f32
    } else {
      %over = arith.cmpf ogt, %x, %high : f32
      %z = scf.if %over -> (f32) {
        scf.yield %high : f32
      } else {
        scf.yield %x : f32
      }
      scf.yield %z : f32
    }
    %positive = arith.cmpf ogt, %y, %low : f32
    scf.if %positive {
      memref.store %y, %b[%i] : memref<16xf32>
    }
  }
  func.return
}
func.func @collatz(%a: memref<16xi64>, %b: memref<16xi64>, %begin: index, %end: index) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %three = arith.constant 3 : i64
  scf.for %i = %begin to %end step %c1 {
    %x = memref.load %a[%i] : memref<16xi64>
    %n, %steps = scf.while (%v = %x, %c = %zero) : (i64, i64) -> (i64, i64) {
      %go = arith.cmpi ne, %v, %one : i64
      scf.condition(%go) %v, %c : i64, i64
    } do {
    ^bb0(%v: i64, %c: i64):
      %bit = arith.andi %v, %one : i64
      %odd = arith.cmpi eq, %bit, %one : i64
      %half = arith.shrui %v, %one : i64
      %t = arith.muli %v, %three : i64
      %t1 = arith.addi %t, %one : i64
      %next = arith.select %odd, %t1, %half : i64
      %count = arith.addi %c, %one : i64
      scf.yield %next, %count : i64, i64
    }
    memref.store %steps, %b[%i] : memref<16xi64>
  }
  func.return
}
func.func private @square(%x: f32) -> f32 {
  %y = arith.mulf %x, %x : f32
  func.return %y : f32
}
func.func private @row(%a: memref<4x4xf32>, %b: memref<4x4xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %j = %c0 to %c4 step %c1 {
    %x = memref.load %a[%i, %j] : memref<4x4xf32>
    %y = func.call @square(%x) : (f32) -> f32
    memref.store %y, %b[%i, %j] : memref<4x4xf32>
  }
  func.return
}
func.func @rows(%a: memref<4x4xf32>, %b: memref<4x4xf32>, %begin: index, %end: index) {
  %c1 = arith.constant 1 : index
  scf.for %i = %begin to %end step %c1 {
    func.call @row(%a, %b, %i) : (memref<4x4xf32>, memref<4x4xf32>, index) -> ()
  }
  func.return
}
"""


@pytest.fixture(scope="module")
def image(target: Target) -> LoadedImage:
    return build(KERNELS, target)


@pytest.mark.sample(7)
@pytest.mark.parametrize(("begin", "end"), [(0, 16), (3, 4), (5, 5), (7, 2)])
def test_loops_carry_values(image: LoadedImage, begin: int, end: int) -> None:
    a, b = np.linspace(0.5, 1.5, 16).astype(np.float32), np.zeros(2, np.float32)
    call(image, "sum", a, b, begin=begin, end=end)
    np.testing.assert_allclose(b, [a[begin:end].sum(), a[begin:end].prod()], rtol=1e-5)


def test_carried_values_may_trade_places(image: LoadedImage) -> None:
    b = np.zeros(1, np.int64)
    call(image, "fibonacci", b, end=20)
    assert b[0] == 6765


def test_steps(image: LoadedImage) -> None:
    a = np.zeros(16, np.int32)
    call(image, "steps", a, begin=1, end=16)
    assert np.flatnonzero(a).tolist() == [1, 6, 11]


def test_branches_give_values_or_not(image: LoadedImage) -> None:
    a, b = np.linspace(-2, 2, 16).astype(np.float32), np.full(16, 9, np.float32)
    call(image, "clip", a, b, end=16)
    np.testing.assert_array_equal(b, np.where(a <= -1, np.float32(9), np.clip(a, -1, 1)))


def test_while(image: LoadedImage) -> None:
    a, b = np.arange(1, 17), np.zeros(16, np.int64)
    call(image, "collatz", a, b, end=16)
    assert b.tolist() == [0, 1, 7, 2, 5, 8, 16, 3, 19, 6, 14, 9, 9, 17, 17, 4]


def test_calls_of_private_functions(image: LoadedImage) -> None:
    a, b = np.arange(16, dtype=np.float32).reshape(4, 4), np.zeros((4, 4), np.float32)
    call(image, "rows", a, b, begin=1, end=4)
    np.testing.assert_array_equal(b[1:], a[1:] ** 2)
    assert not b[0].any()
    assert "square" not in image and "row" not in image


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @f(%x: f32, %begin: index, %end: index) { func.return }", "is a kernel"),
        ("func.func @f(%x: memref<4xf32>) { func.return }", "is a kernel"),
        ("func.func @f(%x: memref<?xf32>, %b: index, %e: index) { func.return }", "dynamic dimension"),
        (
            "func.func @f(%b: index, %e: index) { func.call @g() : () -> () func.return }",
            "calls 'g', which the module does not define",
        ),
        (
            """func.func @f(%x: memref<4xf32>, %b: index, %e: index) {
                 %y = "memref.cast"(%x) : (memref<4xf32>) -> memref<?xf32>
                 func.return
               }""",
            "function 'f': operation 'memref.cast' has no (LLVM|C) form",
        ),
        (
            """func.func @f(%x: memref<4x4xf32>, %b: index, %e: index) {
                 %y = vector.load %x[%b, %e] : memref<4x4xf32>, vector<2x2xf32>
                 func.return
               }""",
            "only 1-D vectors",
        ),
        ("arith.constant 1 : i32", "only functions can be compiled"),
    ],
)
def test_what_has_no_form_is_reported(target: Target, text: str, message: str) -> None:
    with pytest.raises(CodegenError, match=message):
        build(text, target)
