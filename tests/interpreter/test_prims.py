"""PrimFuncs on arrays: fused rounding, parts of large stages, reductions, steps in order, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from landbridge.errors import CompileError, UnsupportedOperatorError
from landbridge.interpreter import prims
from landbridge.interpreter.floats import fused
from landbridge.interpreter.graphs import computed
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.module import IRModule
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.targets import Target
from tests.ops.one_node import run_node

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(5)


def run(build: Callable[[PrimBuilder], None], inputs: list[Array], shape: tuple[int, ...], dtype: str) -> Array:
    """The result of a PrimFunc of constant ``inputs``."""
    block, module = Block(), IRModule(ModuleOp([]), (Target("llvm"),))
    g = GraphBuilder(module, block)
    (value,) = g.call("kernel", [g.constant(a) for a in inputs], [(shape, dtype)], build)
    return computed(module, block, [value], 1 << 30)[0]


def nearest_single(exact: Fraction) -> np.float32:
    """The f32 nearest to ``exact``, the even one of two."""
    near = np.float32(float(exact))
    around = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
    finite = [x for x in around if np.isfinite(x)]
    return min(finite, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(np.int32)) & 1))


SINGLES = st.floats(-(2.0**40), 2.0**40, width=32)


@given(SINGLES, SINGLES, SINGLES)
def test_fused_rounds_once(a: float, b: float, c: float) -> None:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    (found,) = fused(*(np.array([x], np.float32) for x in (a, b, c)))
    assert found == nearest_single(exact)


@given(st.integers(0, 2**23 - 1), st.integers(-40, -30), st.sampled_from([1.0, -1.0]))
def test_fused_next_to_half_way(mantissa: int, exponent: int, sign: float) -> None:
    """Products that lie half-way between two f32, and an addend that f64 cannot hold beside them."""
    a = np.float32(2**23 + mantissa)
    half_way = Fraction(float(a)) + Fraction(float(a)) / 2**24
    b = np.float32(1 + 2.0**-23)
    for addend in (sign * 2.0**exponent, 0.5, -0.5):
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(addend)
        found = fused(np.array([a]), np.array([b]), np.array([addend], np.float32))[0]
        assert found == nearest_single(exact), half_way


@pytest.mark.parametrize("at_once", [1, 7, 64, 1 << 18])
def test_parts_of_a_stage_are_the_whole(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prims, "_AT_ONCE", at_once)
    x, y = (RNG.standard_normal((5, 3, 7)).astype(np.float32) for _ in "xy")

    def largest_of_sums(p: PrimBuilder) -> None:
        p.generic(
            "prr", (3, 5, 7),
            [(b, lambda i, j, k: [j, i, k]) for b in p.inputs],
            [(p.outputs[0], lambda i, j, k: [i])],
            lambda s, acc, v, w: s.maximum(acc, v + w), init=-100.0,
        )  # fmt: skip

    np.testing.assert_array_equal(run(largest_of_sums, [x, y], (3,), "float32"), (x + y).max((0, 2)))


def test_sums_are_rounded_once() -> None:
    """Of f32 in f64; a chain of f32 would lose the ones beside 2**24."""
    x = np.array([2.0**24, *[1.0] * 64], np.float32)

    def total(p: PrimBuilder) -> None:
        p.generic("r", (65,), [(p.inputs[0], lambda i: [i])], [(p.outputs[0], lambda i: [0])],
                  lambda s, acc, v: acc + v, init=0)  # fmt: skip

    assert run(total, [x], (1,), "float32")[0] == 2.0**24 + 64


def test_products_are_summed_as_by_einsum_with_strides_and_without() -> None:
    x, w = RNG.standard_normal((2, 11, 7)).astype(np.float32), RNG.standard_normal((3, 2, 3, 2)).astype(np.float32)

    def convolution(p: PrimBuilder, factor: int = 1) -> None:
        p.generic(
            "ppprrr", (3, 5, 6, 2, 3, 2),
            [(p.inputs[0], lambda o, h, v, i, a, b: [i, h * 2 + a, v + b]),
             (p.inputs[1], lambda o, h, v, i, a, b: [o, i, a, b])],
            [(p.outputs[0], lambda o, h, v, *r: [o, h, v])],
            (lambda s, acc, a, b: acc + a * b) if factor == 1 else (lambda s, acc, a, b: acc + a * b * float(factor)),
            init=0,
        )  # fmt: skip

    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 2), (1, 2))[:, ::2].astype(np.float64)
    wanted = np.einsum("ihvab,oiab->ohv", windows, w.astype(np.float64))
    found = run(convolution, [x, w], (3, 5, 6), "float32")
    np.testing.assert_array_equal(found, wanted.astype(np.float32))
    twice = run(lambda p: convolution(p, 2), [x, w], (3, 5, 6), "float32")  # of three factors: no einsum
    np.testing.assert_allclose(twice, 2 * wanted, rtol=0, atol=2e-6)  # twelve products are rounded to f32


def test_indices_need_not_be_linear() -> None:
    x = np.arange(6, dtype=np.int32).reshape(2, 3)

    def repeated(p: PrimBuilder) -> None:
        p.generic("pp", (4, 6), [(p.inputs[0], lambda i, j: [i // 2, j % 3])], [(p.outputs[0], lambda i, j: [i, j])],
                  lambda s, v: v)  # fmt: skip

    np.testing.assert_array_equal(run(repeated, [x], (4, 6), "int32"), np.tile(x.repeat(2, 0), (1, 2)))


@pytest.mark.parametrize("shift", [1, -1])
def test_an_index_outside_is_an_error(shift: int) -> None:
    """numpy would take one from the other end."""

    def shifted(p: PrimBuilder) -> None:
        buffer = p.inputs[0]
        p.generic("p", (4,), [], [(p.outputs[0], lambda i: [i])],
                  lambda s: s.load(buffer, [s.binary("add", s.index(0), shift)], "float32"))  # fmt: skip

    with pytest.raises(CompileError, match="of axis 0, which has 4 elements"):
        run(shifted, [np.zeros(4, np.float32)], (4,), "float32")


@pytest.mark.parametrize("reduction", ["none", "add", "max"])
def test_updates_of_one_element_come_one_after_the_other(reduction: str) -> None:
    x = np.zeros((4, 3), np.float32)
    indices = np.array([[1], [3], [1], [-3], [2]])
    updates = RNG.standard_normal((5, 3)).astype(np.float32)
    given = [x, indices, updates]
    folded = run_node("ScatterND", given, (0, 1, 2), reduction=reduction)[0]
    np.testing.assert_array_equal(folded, run_node("ScatterND", given, (), reduction=reduction)[0])


@pytest.mark.sample(5)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_running_sums_are_those_of_steps(dtype: str, exclusive: int, reverse: int) -> None:
    x = (RNG.standard_normal((3, 500)) * 10).astype(dtype)
    given, how = [x, np.array(1)], {"exclusive": exclusive, "reverse": reverse}
    folded, steps = run_node("CumSum", given, (0, 1), **how)[0], run_node("CumSum", given, (1,), **how)[0]
    # Steps round each of up to 500 sums, to half an eps: their error grows with the root of that.
    bound = 12 * 2.0**-23 * np.abs(steps).max() if dtype == "float32" else 0
    np.testing.assert_allclose(folded, steps, rtol=0, atol=bound)
    if dtype == "float32":
        ahead = x[:, ::-1] if reverse else x
        exact = np.cumsum(ahead, 1, np.float64) - (ahead if exclusive else 0)
        exact = exact[:, ::-1] if reverse else exact
        np.testing.assert_allclose(folded, exact, rtol=0, atol=2.0**-23 * np.abs(exact).max())


def test_running_sums_may_be_long() -> None:
    """Steps one after the other end at 20,000; numpy does those of a running sum at once."""
    (found,) = run_node("CumSum", [np.ones(300_000, np.int64), np.array(0)], (0, 1))
    np.testing.assert_array_equal(found, np.arange(1, 300_001))


def test_too_much_work_is_refused_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prims, "_MOST", 100)

    def double(p: PrimBuilder) -> None:
        p.generic("p", (101,), [(p.inputs[0], lambda i: [i])], [(p.outputs[0], lambda i: [i])], lambda s, v: v + v)

    with pytest.raises(UnsupportedOperatorError, match="101 iterations"):
        run(double, [np.zeros(101, np.float32)], (101,), "float32")


def test_large_results_are_refused_before_they_are_computed() -> None:
    block, module = Block(), IRModule(ModuleOp([]), (Target("llvm"),))
    g = GraphBuilder(module, block)
    value = g.elementwise("negated", [g.constant(np.zeros(1000, np.float32))], lambda s, v: -v)
    with pytest.raises(UnsupportedOperatorError, match="4000 bytes"):
        computed(module, block, [value], 3999)


def test_lanes_of_a_last_tile_beyond_the_extent_are_not_computed() -> None:
    """The maxima of 12 negative numbers in two tiles of 8, of which the last has 4 lanes of padding, and a copy."""
    text = """
!t = memref<3x2x8xf32, "global">
!m = memref<3xf32, "global">
!c = memref<3x12xf32, "global">
#tiles = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @rows(%x: !t, %m: !m, %c: !c) attributes {lb.prim} {
  %low = arith.constant -100.0 : f32
  linalg.fill ins(%low : f32) outs(%m : !m)
  linalg.generic {indexing_maps = [#tiles, affine_map<(d0, d1, d2) -> (d0)>],
    iterator_types = ["parallel", "reduction", "reduction"]} ins(%x : !t) outs(%m : !m)
    attrs = {lb.extents = [3, 2, 8], lb.bounds = [[1, 2, 8, 12]]} {
  ^bb0(%a: f32, %b: f32):
    %r = arith.maximumf %b, %a : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#tiles, affine_map<(d0, d1, d2) -> (d0, d1 * 8 + d2)>],
    iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : !t) outs(%c : !c)
    attrs = {lb.extents = [3, 2, 8], lb.bounds = [[1, 2, 8, 12]]} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
func.func @main() {
  func.return
}
"""
    function = IRModule.parse(text, (Target("llvm"),)).prims()["rows"]
    x = -1 - np.abs(RNG.standard_normal((3, 12), np.float32))
    packed = np.zeros((3, 2, 8), np.float32)
    packed.reshape(3, 16)[:, :12] = x
    maxima, copy = np.zeros(3, np.float32), np.zeros((3, 12), np.float32)
    prims.run_prim(function, [packed, maxima, copy])
    np.testing.assert_array_equal(maxima, x.max(axis=1))
    np.testing.assert_array_equal(copy, x)
