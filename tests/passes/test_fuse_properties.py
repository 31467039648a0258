"""Random graphs of elementwise operators, copies, reshapes and reductions keep their results, fused and folded."""

from __future__ import annotations

import numpy as np
from graphs import graph
from hypothesis import given, settings
from hypothesis import strategies as st
from native import NativeRun
from nets import constant, conv, elementwise, reduce_last, slice_last, transpose
from test_bufferize import build as compile_module
from tests.ir.interpreter import run_module
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import SSAValue

from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.types import shape_of
from landbridge.passes.registry import run_pipeline

UNARY = {
    "steps": lambda s, a: (2.0 - a * 0.5) / 3.0 + 1.0,
    "relu": lambda s, a: s.maximum(a, 0.0),
    "shift": lambda s, a: a + 1.0,
    "tanh": lambda s, a: s.math("tanh", a),
    "row": lambda s, a: a + s.cast(s.cast(s.index(0), "int32"), "float32"),
}
KINDS = ["unary", "binary", "binary", "bias", "mean", "transpose", "slice", "view", "conv"]
BINARY = {"add": lambda s, a, b: a + b, "max": lambda s, a, b: s.maximum(a, b), "mix": lambda s, a, b: a * 0.5 - b}


def grow(g: GraphBuilder, values: list[SSAValue], draw: st.DataObject) -> SSAValue:
    """One more value over the values so far."""

    def pick(candidates):
        return candidates[draw.draw(st.integers(0, len(candidates) - 1))]

    x = pick(values)
    shape = shape_of(x.type)
    kind = draw.draw(st.sampled_from(KINDS))
    if kind == "binary":

        def fits(v):
            other = shape_of(v.type)
            return len(other) <= len(shape) and all(a in (1, b) for a, b in zip(other[::-1], shape[::-1], strict=False))

        return elementwise(g, BINARY[pick(sorted(BINARY))], x, pick([v for v in values if fits(v)]))
    if kind == "bias" and shape:
        return elementwise(g, BINARY["add"], x, constant(g, shape[-1]))
    if kind == "mean" and shape:
        return reduce_last(g, x, keep=draw.draw(st.booleans()))
    if kind == "transpose" and len(shape) > 1:
        return transpose(g, x, draw.draw(st.permutations(range(len(shape)))))
    if kind == "slice" and shape and shape[-1] > 2:
        return slice_last(g, x, 1, shape[-1] - 2)
    if kind == "view" and len(shape) > 1:
        flat = draw.draw(st.integers(0, len(shape) - 2))
        merged = (*shape[:flat], shape[flat] * shape[flat + 1], *shape[flat + 2 :])
        return g.reshape(x, pick([merged, (1, *shape), (*shape, 1), (shape[0], 1, *shape[1:])]))
    if kind == "conv" and len(shape) == 4 and shape[1] < 8:
        return conv(g, x, draw.draw(st.integers(1, 4)), 1 + 2 * draw.draw(st.integers(0, 1)))
    return elementwise(g, UNARY[pick(sorted(UNARY))], x)


@settings(max_examples=40)
@given(data=st.data())
def test_random_graphs_keep_their_results(data):
    shapes = [data.draw(st.sampled_from([(2, 3, 4), (1, 2, 4, 5), (6, 5)])) for _ in range(2)]

    def build(g, *inputs):
        values = list(inputs)
        for _ in range(data.draw(st.integers(2, 9))):
            values.append(grow(g, values, data))
        return [values[-1], *(v for v in values[2:-1] if data.draw(st.integers(0, 5)) == 0)]

    module = graph([(s, "float32") for s in shapes], build)
    names = [f"input_{i}" for i in range(len(shapes))]
    module.main.attributes["lb.input_names"] = ArrayAttr([StringAttr(name) for name in names])
    arrays = [np.random.default_rng(i).standard_normal(s).astype(np.float32) for i, s in enumerate(shapes)]
    expected = run_module(module, dict(zip(names, arrays, strict=True)))
    found = NativeRun(compile_module(run_pipeline(module, ["fuse", "fold_scale"])))(*arrays)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)
