from __future__ import annotations

import numpy as np
import pytest

from landbridge.targets.target import Target
from landbridge.vm.code_image import LoadedImage

from .native import build, call

FLOAT_KINDS = ["add", "mul", "minnumf", "maxnumf", "minimumf", "maximumf"]
INT_KINDS = ["add", "mul", "minui", "minsi", "maxui", "maxsi", "and", "or", "xor"]


def reduction(kind: str, element: str, accumulate: bool) -> str:
    name = f"reduce_{kind}_{element}_{int(accumulate)}"
    acc = ", %acc" if accumulate else ""
    types = f"(vector<8x{element}>{', ' + element if accumulate else ''}) -> {element}"
    return f"""
func.func @{name}(%a: memref<8x{element}>, %b: memref<1x{element}>, %begin: index, %end: index) {{
  %c0 = arith.constant 0 : index
  %v = vector.load %a[%c0] : memref<8x{element}>, vector<8x{element}>
  %acc = memref.load %b[%c0] : memref<1x{element}>
  %r = "vector.reduction"(%v{acc}) <{{kind = #vector.kind<{kind}>}}> : {types}
  memref.store %r, %b[%c0] : memref<1x{element}>
  func.return
}}"""


KERNELS = """
func.func @lanes(%a: memref<8xf32>, %b: memref<8xf32>, %begin: index, %end: index) {
  %c0 = arith.constant 0 : index
  %v = vector.load %a[%c0] : memref<8xf32>, vector<8xf32>
  %x = vector.extract %v[3] : f32 from vector<8xf32>
  %y = vector.extract %v[%begin] : f32 from vector<8xf32>
  %w = vector.insert %x, %v[0] : f32 into vector<8xf32>
  %z = vector.insert %y, %w[%end] : f32 into vector<8xf32>
  vector.store %z, %b[%c0] : memref<8xf32>, vector<8xf32>
  func.return
}
func.func @shuffles(%a: memref<8xf32>, %b: memref<8xf32>, %begin: index, %end: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %v = vector.load %a[%c0] : memref<8xf32>, vector<4xf32>
  %u = vector.load %a[%c4] : memref<8xf32>, vector<2xf32>
  %w = vector.shuffle %v, %v [3, 2, 1, 0] : vector<4xf32>, vector<4xf32>
  %x = vector.shuffle %v, %u [0, 4, 1, 5] : vector<4xf32>, vector<2xf32>
  vector.store %w, %b[%c0] : memref<8xf32>, vector<4xf32>
  vector.store %x, %b[%c4] : memref<8xf32>, vector<4xf32>
  func.return
}
func.func @fused(%a: memref<8xf32>, %b: memref<8xf32>, %begin: index, %end: index) {
  %c0 = arith.constant 0 : index
  %k = arith.constant 2.0 : f32
  %s = memref.load %a[%c0] : memref<8xf32>
  %v = vector.load %a[%c0] : memref<8xf32>, vector<8xf32>
  %x = vector.broadcast %s : f32 to vector<8xf32>
  %y = vector.broadcast %k : f32 to vector<8xf32>
  %r = vector.fma %v, %x, %y : vector<8xf32>
  vector.store %r, %b[%c0] : memref<8xf32>, vector<8xf32>
  func.return
}
func.func @masks(%b: memref<3x8xi1>, %begin: index, %end: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %m = vector.create_mask %begin : vector<8xi1>
  %n = vector.create_mask %end : vector<8xi1>
  %k = vector.create_mask %c5 : vector<8xi1>
  vector.store %m, %b[%c0, %c0] : memref<3x8xi1>, vector<8xi1>
  vector.store %n, %b[%c1, %c0] : memref<3x8xi1>, vector<8xi1>
  vector.store %k, %b[%c2, %c0] : memref<3x8xi1>, vector<8xi1>
  func.return
}
func.func @bits(%a: memref<4xf32>, %b: memref<8xi16>, %begin: index, %end: index) {
  %c0 = arith.constant 0 : index
  %v = vector.load %a[%c0] : memref<4xf32>, vector<4xf32>
  %w = vector.bitcast %v : vector<4xf32> to vector<8xi16>
  vector.store %w, %b[%c0] : memref<8xi16>, vector<8xi16>
  func.return
}
"""


@pytest.fixture(scope="module")
def image(target: Target) -> LoadedImage:
    texts = [KERNELS]
    for accumulate in (False, True):
        texts += [reduction(kind, "f32", accumulate) for kind in FLOAT_KINDS]
        texts += [reduction(kind, "i32", accumulate) for kind in INT_KINDS]
    return build("\n".join(texts), target)


def test_lanes_are_taken_and_put_at_constant_and_dynamic_places(image: LoadedImage) -> None:
    a, b = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    call(image, "lanes", a, b, begin=5, end=7)
    assert b.tolist() == [3, 1, 2, 3, 4, 5, 6, 5]


def test_shuffles_of_equal_and_unequal_widths(image: LoadedImage) -> None:
    a, b = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    call(image, "shuffles", a, b)
    assert b.tolist() == [3, 2, 1, 0, 0, 4, 1, 5]


def test_broadcast_and_fma(image: LoadedImage) -> None:
    a, b = np.linspace(3, 4, 8).astype(np.float32), np.zeros(8, np.float32)
    call(image, "fused", a, b)
    np.testing.assert_array_equal(b, (a.astype(np.float64) * a[0] + 2).astype(np.float32))


@pytest.mark.parametrize(("begin", "end"), [(0, 8), (-3, 100), (1, 7), (-(2**62), 2**62)])
def test_masks_clamp_their_count(image: LoadedImage, begin: int, end: int) -> None:
    b = np.zeros((3, 8), np.uint8)
    call(image, "masks", b, begin=begin, end=end)
    np.testing.assert_array_equal(b, [np.arange(8) < begin, np.arange(8) < end, np.arange(8) < 5])


def test_bitcast(image: LoadedImage) -> None:
    a, b = np.linspace(1, 9, 4).astype(np.float32), np.zeros(8, np.int16)
    call(image, "bits", a, b)
    np.testing.assert_array_equal(b, a.view(np.int16))


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("kind", FLOAT_KINDS)
def test_float_reductions(image: LoadedImage, kind: str, accumulate: bool) -> None:
    a = np.array([1.5, -2, 3, 0.25, 5, -6, 7, 2], np.float32)
    b = np.array([4.0], np.float32)
    values = [4.0, *a] if accumulate else [*a]
    want = {"add": np.sum, "mul": np.prod}.get(kind, np.min if "min" in kind else np.max)(values)
    call(image, f"reduce_{kind}_f32_{int(accumulate)}", a, b)
    assert b[0] == want


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("kind", INT_KINDS)
def test_int_reductions(image: LoadedImage, kind: str, accumulate: bool) -> None:
    dtype = np.uint32 if kind.endswith("ui") else np.int32
    a = np.array([7, -2, 3, 12, 5, -6, 7, 2], np.int32).view(dtype)
    b = np.array([11], dtype)
    values = np.array([11, *a] if accumulate else [*a], dtype)
    functions = {"add": np.add, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    call(image, f"reduce_{kind}_i32_{int(accumulate)}", a, b)
    assert b[0] == functions.get(kind, np.minimum if "min" in kind else np.maximum).reduce(values, dtype=dtype)


def test_maximumf_reduction_propagates_nan(image: LoadedImage) -> None:
    a = np.array([1, np.nan, 3, 4, 5, 6, 7, 8], np.float32)
    b = np.array([0.0], np.float32)
    call(image, "reduce_maximumf_f32_1", a, b)
    assert np.isnan(b[0])
    b[0] = 0
    call(image, "reduce_maxnumf_f32_1", a, b)
    assert b[0] == 8
