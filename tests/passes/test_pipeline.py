"""The whole pipeline on random convolution nets: fused, packed and reused, results stay those of the plain path."""

from __future__ import annotations

import random

import numpy as np
import pytest
from graphs import add, conv3x3, double, graph, relu
from native import NativeRun

from landbridge.compiler import api as compiler
from landbridge.compiler import compilation
from landbridge.ir.types import shape_of

PLAIN = tuple(p for p in compilation.PIPELINE if p not in ("fuse", "fold_scale", "pack", "inplace"))


def scale(g, x, factors):
    g.node = "scale"
    return g.elementwise("scale", [x, g.constant(factors, "s")], lambda s, a, b: a * b)


def gate(g, x):
    """Squeeze and excite: every channel times the sigmoid of its mean."""
    n, c, h, w = shape_of(x.type)

    def mean(p):
        ins = [(p.inputs[0], lambda b, f, y, z: (b, f, y, z))]
        outs = [(p.outputs[0], lambda b, f, y, z: (b, f, 0, 0))]
        p.generic("pprr", [n, c, h, w], ins, outs, lambda s, acc, a: acc + a * (1 / (h * w)), init=0.0)

    (means,) = g.call("mean", [x], [((n, c, 1, 1), "float32")], mean)
    return g.elementwise("gate", [x, means], lambda s, a, b: a * s.sigmoid(b))


def net(seed: int):
    choose, generator = random.Random(seed), np.random.default_rng(seed)

    def build(g, x):
        values = [x]
        for _ in range(choose.randint(3, 9)):
            a, b = choose.choice(values), choose.choice(values)
            n, c, h, w = shape_of(a.type)
            match choose.choice(["conv", "conv", "relu", "double", "add", "concat", "scale", "gate", "flat"]):
                case "conv":
                    channels = choose.choice([3, 16, 20, 32])
                    weights = generator.standard_normal((channels, c, 3, 3)).astype(np.float32) / np.sqrt(9 * c)
                    values.append(conv3x3(g, a, weights.astype(np.float32)))
                case "relu":
                    values.append(relu(g, a))
                case "double":
                    values.append(double(g, a))
                case "add" if a.type == b.type:
                    values.append(add(g, a, b))
                case "scale":
                    values.append(scale(g, a, generator.standard_normal((1, c, 1, 1)).astype(np.float32)))
                case "gate":
                    values.append(gate(g, a))
                case "flat":
                    values.append(g.reshape(double(g, g.reshape(a, [n, c, h * w])), [n, c, h, w]))
                case _:
                    values.append(g.concat([a, b], 1))
        return [values[-1], choose.choice(values)]

    return graph([((1, 8, 9, 9), "float32")], build)


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(12))
def test_passes_keep_results(seed, monkeypatch):
    module = net(seed)
    x = np.random.default_rng(seed).standard_normal((1, 8, 9, 9)).astype(np.float32)
    fused = compiler.compile(module)
    monkeypatch.setattr(compilation, "PIPELINE", PLAIN)
    plain = compiler.compile(module)
    found, expected = NativeRun(fused)(x), NativeRun(plain)(x)
    for a, b in zip(found, expected, strict=True):
        assert np.abs(a - b).max() <= 1e-5 * np.abs(b).max()
