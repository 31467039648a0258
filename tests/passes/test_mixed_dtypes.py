"""Graphs of several dtypes of one size: buffers are reused among them, and no view is of another dtype."""

from __future__ import annotations

from random import Random

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper

import landbridge as lb

SIDE = 6
#: Dtypes of 4 bytes, and of 8.
SIZES = {
    4: (TensorProto.FLOAT, TensorProto.INT32, TensorProto.UINT32),
    8: (TensorProto.DOUBLE, TensorProto.INT64, TensorProto.UINT64),
}


def drawn(seed: int) -> ModelProto:
    """A model of exact arithmetic on small numbers: casts, extremes, sums, transposes, reshapes, rows' maxima."""
    random = Random(seed)
    kinds = SIZES[random.choice(list(SIZES))]
    known = {"x": kinds[0]}
    nodes = []
    weights = [helper.make_tensor("shape", TensorProto.INT64, [2], [SIDE, SIDE])]
    weights += [helper.make_tensor("flat", TensorProto.INT64, [2], [4, SIDE * SIDE // 4])]
    for i in range(random.randint(4, 12)):
        source, name = random.choice(list(known)[-3:]), f"v{i}"
        kind = known[source]
        match random.choice(["cast", "cast", "cast", "pair", "turn", "view", "row"]):
            case "cast":
                kind = random.choice(kinds)
                nodes.append(helper.make_node("Cast", [source], [name], to=kind))
            case "pair":
                other = random.choice([v for v, k in known.items() if k == kind])
                nodes.append(helper.make_node("Add", [source, other], [name]))
            case "turn":
                nodes.append(helper.make_node("Transpose", [source], [name], perm=[1, 0]))
            case "view":
                nodes.append(helper.make_node("Reshape", [source, "flat"], [f"{name}_flat"]))
                nodes.append(helper.make_node("Reshape", [f"{name}_flat", "shape"], [name]))
            case _:
                nodes.append(helper.make_node("Cast", [source], [f"{name}_float"], to=kinds[0]))
                nodes.append(helper.make_node("ReduceMax", [f"{name}_float"], [f"{name}_top"], axes=[1]))
                nodes.append(helper.make_node("Cast", [f"{name}_top"], [f"{name}_cast"], to=kind))
                nodes.append(helper.make_node("Add", [source, f"{name}_cast"], [name]))
        known[name] = kind
    results = random.sample(list(known)[1:], 2)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "mixed",
        [value("x", kinds[0], (SIDE, SIDE))],
        [value(v, known[v], (SIDE, SIDE)) for v in results],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("seed", [33, 38])
def test_a_view_has_the_dtype_of_its_buffer(seed: int) -> None:
    check(seed)


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(60))
def test_dtypes_of_one_size_are_kept_apart(seed: int) -> None:
    check(seed)


def check(seed: int) -> None:
    """Compile and run a drawn model; onnxruntime gives the same."""
    model = drawn(seed)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    dtype = np.float32 if session.get_inputs()[0].type == "tensor(float)" else np.float64
    x = np.random.default_rng(seed).integers(0, 50, (SIDE, SIDE)).astype(dtype)
    want = session.run(None, {"x": x})
    found = lb.Session(lb.compile(model))(x)
    for y, w in zip(found, want, strict=True):
        assert np.asarray(y).dtype == w.dtype
        np.testing.assert_array_equal(y, w)
