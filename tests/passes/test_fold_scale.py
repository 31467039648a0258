"""Arithmetic with constants goes into constant weights, or becomes one step."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graphs import graph
from native import NativeRun
from nets import constant, conv, elementwise
from test_bufferize import build as compile_module
from xdsl.dialects import arith, linalg

import landbridge as lb
from landbridge.passes.registry import run_pipeline
from landbridge.process import background_threads

SHAPE = (1, 3, 5, 6)


def folded(build, *passes):
    """After fusion and the pass, which keep the result: the generics, and the arithmetic of the last of them."""
    x = np.random.default_rng(3).standard_normal(SHAPE).astype(np.float32)
    (expected,) = NativeRun(compile_module(graph([(SHAPE, "float32")], build)))(x)
    module = run_pipeline(graph([(SHAPE, "float32")], build), [*passes, "fuse", "fold_scale"])
    generics = [op for f in module.prims().values() for op in f.walk() if isinstance(op, linalg.ops.GenericOp)]
    (found,) = NativeRun(compile_module(module))(x)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
    body = generics[-1].body.block.ops
    return len(generics), [op.name.split(".")[1] for op in body if not isinstance(op, arith.ConstantOp)][:-1]


def scale(g, x, *shape):
    return elementwise(g, lambda s, a, b: a * b, x, constant(g, *shape, seed=7))


def test_batch_normalization_leaves_its_addition():
    def build(g, x):
        y = conv(g, x, 4, 3)
        return [elementwise(g, lambda s, a, b, c: b * a + c, y, constant(g, 4, 1, 1), constant(g, 1, 4, 1, 1))]

    assert folded(build) == (2, ["addf"])


def test_a_bias_before_a_scale_is_scaled_with_the_weights():
    def build(g, x):
        y = elementwise(g, lambda s, a, b: a + b, conv(g, x, 4, 3), constant(g, 4, 1, 1))
        y = elementwise(
            g, lambda s, a, b, c: (a - b) / c, y, constant(g, 4, 1, 1, seed=9), constant(g, 4, 1, 1, seed=5)
        )
        return [elementwise(g, lambda s, a: s.neg(2.0 - a) * 3.0, y)]

    assert folded(build) == (2, ["addf"])


def test_a_lone_scale_leaves_nothing():
    def build(g, x):
        return [elementwise(g, lambda s, a: a * 2.0, scale(g, conv(g, x, 4, 3), 4, 1, 1))]

    assert folded(build) == (1, ["mulf", "addf"])


def test_steps_behind_anything_else_become_one():
    def build(g, x):
        y = elementwise(g, lambda s, a: s.maximum(a, 0.0) / 6.0 + 1.0, x)
        return [elementwise(g, lambda s, a, b: s.exp((a - b) * 0.5), y, constant(g, 3, 1, 1))]

    assert folded(build) == (1, ["maximumf", "mulf", "addf", "exp"])


def test_steps_may_start_where_others_end():
    def swish(g, x):
        y = elementwise(g, lambda s, a: (a * 2.0 + 1.0) / 3.0, x)
        z = elementwise(g, lambda s, a: s.sigmoid(a * 0.5 * 3.0 + 1.0) - a * 2.0 * 3.0, y)
        return [z]

    assert folded(swish)[0] == 1


@pytest.mark.parametrize(("divisor", "left"), [(6.0, "divf"), (49.0, "divf"), (8.0, "mulf"), (-0.5, "mulf")])
def test_a_division_becomes_a_multiplication_that_is_as_exact(divisor, left):
    assert folded(lambda g, x: [elementwise(g, lambda s, a: a / divisor, x)]) == (1, [left])


SPECIAL = np.array([0, -0.0, 1, -1, 0.3, 49, 1e-42, 1e-38, 3e38, -3e38, np.inf, -np.inf, np.nan], np.float32)


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    "steps",
    [
        lambda a: a * 1.0 + 0.0,
        lambda a: 0.0 - a * 1.0,
        lambda a: a - 1.0 + 1.0,
        lambda a: (a + 12582912.0) - 12582912.0,
        lambda a: (a * 4.0 + 12582912.0) - 12582912.0,
        lambda a: a * 1e20 * 1e20,
        lambda a: a * 1e-30 * 1e-30,
        lambda a: a * 1e-30 * 1e30,
        lambda a: a / 1e-30 * 1e-30,
        lambda a: (a + 1e30) * 1e30,
        lambda a: a * 0.0 + 1.0,
        lambda a: a * float("inf") + 1.0,
        lambda a: a / 0.0 * 0.5,
    ],
)
def test_no_fold_changes_more_than_roundings(steps):
    x = np.resize(SPECIAL, SHAPE)
    module = graph([(SHAPE, "float32")], lambda g, v: [elementwise(g, lambda s, a: steps(a), v)])
    (found,) = NativeRun(compile_module(run_pipeline(module, ["fuse", "fold_scale"])))(x)
    with np.errstate(all="ignore"):
        want = steps(x)
    assert want.dtype == np.float32
    np.testing.assert_array_equal(found, want)
    is_number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(found[is_number]), np.signbit(want[is_number]))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("reader", "left"),
    [
        (lambda g, y: scale(g, y, 6), ["mulf"]),
        (lambda g, y: scale(g, y, 4, 5, 1), ["mulf"]),
        (lambda g, y: elementwise(g, lambda s, a, b: a * b + a, y, constant(g, 4, 1, 1)), ["mulf", "addf"]),
        (lambda g, y: elementwise(g, lambda s, a, b: a * b, y, conv(g, y, 4)), ["mulf"]),
        (lambda g, y: elementwise(g, lambda s, a: a * 0.0, y), ["mulf"]),
        (lambda g, y: elementwise(g, lambda s, a: 1.0 / a, y), ["divf"]),
        (lambda g, y: scale(g, elementwise(g, lambda s, a, b: a + b, y, constant(g, 4, 1, 1)), 6), ["addf", "mulf"]),
    ],
    ids=["width", "height", "used twice", "not constant", "zero", "numerator", "product of axes"],
)
def test_other_arithmetic_stays(reader, left):
    assert folded(lambda g, x: [reader(g, conv(g, x, 4))])[1] == left


def test_weights_and_primfuncs_that_another_call_uses_keep_theirs():
    def build(g, x):
        y = conv(g, x, 3)
        weights = next(o for o in y.owner.inputs if o is not x)
        z = conv(g, y, 3)
        z.owner.operands[1] = weights
        return [scale(g, z, 3, 1, 1)]

    assert folded(build, "dedup") == (2, ["mulf", "addf"])


def test_an_overflowing_scale_stays_out_of_the_weights():
    def build(g, x):
        y = conv(g, x, 4)
        huge = g.constant(np.full((4, 1, 1), 3e38, np.float32))
        return [elementwise(g, lambda s, a, b: a * b, y, huge)]

    module = run_pipeline(graph([(SHAPE, "float32")], build), ["fuse", "fold_scale"])
    assert sum(isinstance(op, linalg.ops.GenericOp) for f in module.prims().values() for op in f.walk()) == 2


def test_parts_of_weights_are_scaled_beside_each_other(monkeypatch):
    """Each with its own part of the scales, and each looked at for what is too large."""

    def weights(largest):
        def build(g, x):
            scales = np.linspace(0.5, largest, 4, dtype=np.float32)
            y = conv(g, x, 4)
            return [elementwise(g, lambda s, a, b: a * b, y, g.constant(scales.reshape(4, 1, 1)))]

        module = run_pipeline(graph([(SHAPE, "float32")], build), ["fuse", "fold_scale"])
        return list(module.constants.values())

    monkeypatch.setattr(background_threads, "_cores", lambda: 1)
    expected = weights(4.0), weights(3e38)
    monkeypatch.setattr(background_threads, "_cores", lambda: 3)
    monkeypatch.setattr(background_threads, "_PART", 1)
    for found, one in zip((weights(4.0), weights(3e38)), expected, strict=True):
        assert len(found) == len(one) and all(map(np.array_equal, found, one))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_signs_of_other_types_than_float32_stay(dtype):
    def build(g, x):
        return [elementwise(g, lambda s, a: s.cast(s.neg(s.neg(s.neg(s.cast(a, dtype)))), "float32"), x)]

    _, ops = folded(build)
    assert ops.count("negf") == 3 and "mulf" not in ops


def test_the_weights_as_they_were_are_gone():
    def build(g, x):
        return [scale(g, conv(g, x, 4, 3), 4, 1, 1)]

    module = run_pipeline(graph([(SHAPE, "float32")], build), ["fuse", "fold_scale"])
    assert [array.shape for array in module.constants.values()] == [(4, 3, 3, 3)]


def test_a_temporary_that_is_written_earlier_stands_before_that() -> None:
    """A mean of one element is the sum of it, divided by 1: a copy, into a temporary that stood behind it."""
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[3,1] x) => (float[3,1] y) {
        one = Constant<value = float[1] {2.0}>() y = LayerNormalization<axis = 1>(x, one) }"""
    (y,) = lb.Session(lb.compile(onnx.parser.parse_model(text)))(np.ones((3, 1), np.float32))
    np.testing.assert_array_equal(np.asarray(y), np.zeros((3, 1), np.float32), strict=True)
