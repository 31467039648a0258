"""Scales behind convolutions go into constant weights."""

from __future__ import annotations

import numpy as np
import pytest
from tests.passes.graphs import graph
from tests.passes.native import NativeRun
from tests.passes.nets import constant, conv, elementwise
from tests.passes.test_bufferize import build as compile_module
from xdsl.dialects import arith

from landbridge.passes.registry import run_pipeline

SHAPE = (1, 3, 5, 6)


def folded(build):
    """The module after the pass, which keeps the result, and the number of calls and multiplications left."""
    x = np.random.default_rng(3).standard_normal(SHAPE).astype(np.float32)
    (expected,) = NativeRun(compile_module(graph([(SHAPE, "float32")], build)))(x)
    module = run_pipeline(graph([(SHAPE, "float32")], build), ["fold_scale"])
    prims = module.prims().values()
    products = sum(isinstance(op, arith.MulfOp) for f in prims for op in f.walk())
    (found,) = NativeRun(compile_module(module))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    return len(prims), products


def scale(g, x, *shape):
    return elementwise(g, lambda s, a, b: a * b, x, constant(g, *shape, seed=7))


def test_batch_normalization_leaves_its_addition():
    def build(g, x):
        y = conv(g, x, 4, 3)
        return [elementwise(g, lambda s, a, b, c: b * a + c, y, constant(g, 4, 1, 1), constant(g, 1, 4, 1, 1))]

    assert folded(build) == (2, 1)


def test_a_lone_scale_disappears_and_scales_add_up():
    def build(g, x):
        y = scale(g, conv(g, x, 4, 3), 4, 1, 1)
        return [elementwise(g, lambda s, a: a * 2.0, y)]

    assert folded(build) == (1, 1)


@pytest.mark.parametrize(
    "reader",
    [
        lambda g, y: scale(g, y, 6),
        lambda g, y: scale(g, y, 4, 5, 1),
        lambda g, y: elementwise(g, lambda s, a, b: a * b + a, y, constant(g, 4, 1, 1)),
        lambda g, y: elementwise(g, lambda s, a, b: (a + 1.0) * b, y, constant(g, 4, 1, 1)),
        lambda g, y: elementwise(g, lambda s, a, b: a * b, y, conv(g, y, 4)),
    ],
    ids=["along width", "along height", "used twice", "after an addition", "not constant"],
)
def test_other_products_stay(reader):
    calls, products = folded(lambda g, x: [reader(g, conv(g, x, 4))])
    assert products == calls


def test_weights_that_another_convolution_reads_keep_their_values():
    def build(g, x):
        y = conv(g, x, 3)
        weights = next(o for o in y.owner.inputs if o is not x)
        z = conv(g, x, 3)
        z.owner.operands[1] = weights
        return [elementwise(g, lambda s, a, b: a + b, scale(g, y, 3, 1, 1), z)]

    assert folded(build) == (3, 2)


def test_an_overflowing_scale_is_not_folded():
    def build(g, x):
        y = conv(g, x, 4)
        return [elementwise(g, lambda s, a, b: a * b, y, g.constant(np.full((4, 1, 1), 3e38, np.float32)))]

    with np.errstate(over="ignore"):
        module = run_pipeline(graph([(SHAPE, "float32")], build), ["fold_scale"])
    assert len(module.prims()) == 2
