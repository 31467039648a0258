from __future__ import annotations

import numpy as np
import pytest

from landbridge.targets.target import Target
from landbridge.vm.code_image import LoadedImage

from .native import MLIR, build, call

KERNELS = """
func.func @copy4d(%a: memref<2x3x4x5xf32>, %b: memref<5x4x3x2xf32>, %begin: index, %end: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  scf.for %i = %begin to %end step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      scf.for %k = %c0 to %c4 step %c1 {
        scf.for %l = %c0 to %c5 step %c1 {
          %x = memref.load %a[%i, %j, %k, %l] : memref<2x3x4x5xf32>
          memref.store %x, %b[%l, %k, %j, %i] : memref<5x4x3x2xf32>
        }
      }
    }
  }
  func.return
}
func.func @strided(%a: memref<3x4xf32, strided<[10, 2], offset: 1>>, %b: memref<3x4xf32>, %begin: index, %end: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %begin to %end step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      %x = memref.load %a[%i, %j] : memref<3x4xf32, strided<[10, 2], offset: 1>>
      memref.store %x, %b[%i, %j] : memref<3x4xf32>
    }
  }
  func.return
}
func.func @scalar(%a: memref<f64>, %b: memref<f64>, %begin: index, %end: index) {
  %x = memref.load %a[] : memref<f64>
  memref.store %x, %b[] : memref<f64>
  func.return
}
func.func @bools(%a: memref<32xi1>, %b: memref<32xi1>, %begin: index, %end: index) {
  %true = arith.constant true
  %ones = arith.constant dense<true> : vector<8xi1>
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c24 = arith.constant 24 : index
  %x = memref.load %a[%c0] : memref<32xi1>
  %y = arith.xori %x, %true : i1
  memref.store %y, %b[%c0] : memref<32xi1>
  %v = vector.load %a[%c8] : memref<32xi1>, vector<8xi1>
  %w = arith.xori %v, %ones : vector<8xi1>
  vector.store %w, %b[%c8] : memref<32xi1>, vector<8xi1>
  %p = vector.maskedload %a[%c16], %v, %ones : memref<32xi1>, vector<8xi1>, vector<8xi1> into vector<8xi1>
  vector.maskedstore %b[%c24], %v, %p : memref<32xi1>, vector<8xi1>, vector<8xi1>
  func.return
}
func.func @misaligned(%a: memref<64xf32>, %b: memref<64xf32>, %begin: index, %end: index) {
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %x = vector.load %a[%c3] : memref<64xf32>, vector<16xf32>
  vector.store %x, %b[%c5] : memref<64xf32>, vector<16xf32>
  func.return
}
func.func @tail(%a: memref<21xf32>, %b: memref<21xf32>, %begin: index, %end: index) {
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  scf.for %i = %begin to %end step %c16 {
    %rest = arith.subi %end, %i : index
    %mask = vector.create_mask %rest : vector<16xi1>
    %x = vector.maskedload %a[%i], %mask, %zero : memref<21xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %y = arith.addf %x, %x : vector<16xf32>
    vector.maskedstore %b[%i], %mask, %y : memref<21xf32>, vector<16xi1>, vector<16xf32>
  }
  func.return
}
func.func @padded(%a: memref<4x8xf32>, %b: memref<4x8xf32>, %begin: index, %end: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %left = arith.constant dense<[false, true, true, true, true, true, true, true]> : vector<8xi1>
  scf.for %i = %begin to %end step %c1 {
    %at = arith.subi %c0, %c1 : index
    %x = vector.maskedload %a[%i, %at], %left, %zero : memref<4x8xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
    vector.store %x, %b[%i, %c0] : memref<4x8xf32>, vector<8xf32>
  }
  func.return
}
func.func @stack(%a: memref<8xf32>, %b: memref<8xf32>, %begin: index, %end: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  scf.for %n = %begin to %end step %c1 {
    %t = memref.alloca() : memref<8xf32>
    scf.for %i = %c0 to %c8 step %c1 {
      %x = memref.load %a[%i] : memref<8xf32>
      %j = arith.subi %c7, %i : index
      memref.store %x, %t[%j] : memref<8xf32>
    }
    scf.for %i = %c0 to %c8 step %c1 {
      %x = memref.load %t[%i] : memref<8xf32>
      memref.store %x, %b[%i] : memref<8xf32>
    }
  }
  func.return
}
func.func @shift(%a: memref<8xi32>, %b: memref<8xi32>, %begin: index, %end: index) attributes {lb.in_place} {
  %c1 = arith.constant 1 : index
  scf.for %i = %begin to %end step %c1 {
    %x = memref.load %a[%i] : memref<8xi32>
    %j = arith.addi %i, %c1 : index
    memref.store %x, %b[%j] : memref<8xi32>
  }
  func.return
}
func.func @gather(%idx: memref<4xindex>, %a: memref<8xf32>, %b: memref<4xf32>, %begin: index, %end: index) {
  %c1 = arith.constant 1 : index
  scf.for %i = %begin to %end step %c1 {
    %j = memref.load %idx[%i] : memref<4xindex>
    %x = memref.load %a[%j] : memref<8xf32>
    memref.store %x, %b[%i] : memref<4xf32>
  }
  func.return
}
"""


@pytest.fixture(scope="module")
def image(target: Target) -> LoadedImage:
    return build(KERNELS, target)


def test_row_major_layout_of_any_rank(image: LoadedImage) -> None:
    a = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    b = np.zeros((5, 4, 3, 2), np.float32)
    call(image, "copy4d", a, b, end=2)
    np.testing.assert_array_equal(b, a.T)


def test_strides_and_offset(image: LoadedImage) -> None:
    memory = np.arange(40, dtype=np.float32)
    b = np.zeros((3, 4), np.float32)
    call(image, "strided", memory, b, end=3)
    np.testing.assert_array_equal(b, np.lib.stride_tricks.as_strided(memory[1:], (3, 4), (40, 8)))


def test_rank_zero(image: LoadedImage) -> None:
    a, b = np.array(2.5), np.array(0.0)
    call(image, "scalar", a, b)
    assert b == 2.5


def test_i1_is_a_byte_of_zero_or_one(image: LoadedImage) -> None:
    a = np.arange(32) % 3 == 0
    b = np.zeros(32, np.uint8)
    call(image, "bools", a, b)
    assert b[0] == (not a[0])
    np.testing.assert_array_equal(b[8:16], ~a[8:16])
    np.testing.assert_array_equal(b[24:32], np.where(a[8:16], a[16:24], False))


def test_vectors_are_aligned_to_the_element_only(image: LoadedImage) -> None:
    memory = np.arange(65, dtype=np.float32)
    b = np.zeros(65, np.float32)
    call(image, "misaligned", memory[1:], b[1:])
    np.testing.assert_array_equal(b[6:22], memory[4:20])


@pytest.mark.parametrize("end", [1, 15, 16, 17, 21])
def test_masks_touch_no_byte_beyond_the_end(image: LoadedImage, end: int) -> None:
    a = np.arange(21, dtype=np.float32)
    b = np.full(21, -1, np.float32)
    call(image, "tail", a, b, end=end)
    np.testing.assert_array_equal(b[:end], 2 * a[:end])
    assert (b[end:] == -1).all()


def test_a_masked_index_may_start_before_the_operand(image: LoadedImage) -> None:
    a = np.arange(32, dtype=np.float32).reshape(4, 8)
    b = np.full((4, 8), -1, np.float32)
    call(image, "padded", a, b, end=4)
    np.testing.assert_array_equal(b, np.pad(a, ((0, 0), (1, 0)))[:, :8])


def test_stack_memory(image: LoadedImage) -> None:
    a, b = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    call(image, "stack", a, b, end=3)
    np.testing.assert_array_equal(b, a[::-1])


def test_in_place_functions_see_their_own_stores(image: LoadedImage) -> None:
    a = np.arange(1, 9, dtype=np.int32)
    call(image, "shift", a, a, end=7)
    assert a.tolist() == [1] * 8


def test_indices_from_memory(image: LoadedImage) -> None:
    a, b = np.arange(8, dtype=np.float32) * 10, np.zeros(4, np.float32)
    call(image, "gather", np.array([7, 0, 3, 3]), a, b, end=4)
    assert b.tolist() == [70, 0, 30, 30]


@pytest.mark.sample(4)
@pytest.mark.parametrize("element", ["int8", "int16"])
@pytest.mark.parametrize("lanes", [4, 8, 16, 32])
def test_a_masked_store_of_narrowed_lanes_writes_these_alone(element: str, lanes: int, target: Target) -> None:
    kind = MLIR[element]
    masks = {f"one_{lane}": [i == lane for i in range(lanes)] for lane in (0, 1, lanes - 1)}
    masks |= {f"first_{n}": [i < n for i in range(lanes)] for n in (0, 2, 3, lanes // 2 + 1, lanes)}
    image = build("\n".join(_narrowing(name, kind, mask) for name, mask in masks.items()), target)
    values = np.arange(3, 3 + lanes, dtype=np.float32)
    for name, mask in masks.items():
        stored = np.full(lanes, -1, element)
        call(image, name, values, stored)
        np.testing.assert_array_equal(stored, np.where(mask, values, -1))


def _narrowing(name: str, kind: str, mask: list[bool]) -> str:
    lanes = len(mask)
    true = ", ".join(str(m).lower() for m in mask)
    memory = f"memref<{lanes}x{kind}>, vector<{lanes}xi1>, vector<{lanes}x{kind}>"
    return f"""
func.func @{name}(%a: memref<{lanes}xf32>, %b: memref<{lanes}x{kind}>, %begin: index, %end: index) {{
  %c0 = arith.constant 0 : index
  %mask = arith.constant dense<[{true}]> : vector<{lanes}xi1>
  %x = vector.load %a[%c0] : memref<{lanes}xf32>, vector<{lanes}xf32>
  %y = "arith.fptosi"(%x) : (vector<{lanes}xf32>) -> vector<{lanes}x{kind}>
  vector.maskedstore %b[%c0], %mask, %y : {memory}
  func.return
}}"""
