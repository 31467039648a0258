"""A Target with three kinds of memory, and a network to place in it."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, helper
from tests.frontend.models import model, value

from landbridge.targets import Target

SHAPE = (1, 16, 8, 8)

#: Ordinary memory, a flat scratchpad, a scratchpad of rows, and whole objects.
MEMORY = [
    {"scope": "global", "host_access": "read_write", "coherent": True, "alignment": 64},
    {"scope": "global.fast", "host_access": "read_write", "coherent": True, "alignment": 128, "capacity": 1 << 16},
    {
        "scope": "global.rows",
        "host_access": "read_write",
        "coherent": True,
        "ndim": 2,
        "row_alignment": 32,
        "capacity": 1 << 16,
        "allocators": ["naive"],
    },
    {
        "scope": "global.texture",
        "host_access": "read_write",
        "coherent": True,
        "ndim": 3,
        "capacity": 1 << 16,
        "allocators": ["naive"],
    },
]


def target(**facts: dict[str, object]) -> Target:
    """The Target, with other facts for some scopes."""
    return Target({"kind": "llvm", "memory": [kind | facts.get(str(kind["scope"]), {}) for kind in MEMORY]})


def network(shape: tuple[int, ...] = SHAPE) -> ModelProto:
    """``sigmoid(conv2(relu(conv(x))) + x)``; every tensor has this shape."""
    rng, channels = np.random.default_rng(0), shape[1]
    weights = {name: rng.standard_normal((channels, channels, 3, 3)).astype(np.float32) / 12 for name in ("w1", "w2")}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Conv", ["r", "w2"], ["d"], name="conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["d", "x"], ["s"], name="add"),
        helper.make_node("Sigmoid", ["s"], ["y"], name="sigmoid"),
    ]
    return model(nodes, [value("x", shape)], [value("y", shape)], weights)
