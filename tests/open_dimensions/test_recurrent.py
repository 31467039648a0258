"""LSTM, GRU and RNN over batches of any size, with first states and without."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from tests.open_dimensions.models import Weights

STEPS, INPUTS, HIDDEN = 3, 5, 8
#: Absolute: values are below 1, and three steps of sums of 13 f32 products come before the last.
TOLERANCE = 1e-6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def network(kind: str, states: bool) -> onnx.ModelProto:
    w = Weights()
    rows = GATES[kind] * HIDDEN
    operands = ["x", w(2, rows, INPUTS), w(2, rows, HIDDEN), w(2, 2 * rows), ""]
    inputs = {"x": [STEPS, "N", INPUTS]}
    if states:
        names = ["h", "c"][: 2 if kind == "LSTM" else 1]
        operands += names
        inputs |= {name: [2, "N", HIDDEN] for name in names}
    node = helper.make_node(kind, operands, ["y", "last"], hidden_size=HIDDEN, direction="bidirectional")
    graph = helper.make_graph(
        [node],
        "recurrent",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * r) for n, r in (("y", 4), ("last", 3))],
        w.made,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("kind", GATES)
def test_a_batch_of_any_size(kind: str, states: bool) -> None:
    model = network(kind, states)
    peer = onnxruntime.InferenceSession(model.SerializeToString())
    session = lb.Session(lb.compile(model, dims={"N": "1..17"}))
    for batch in (1, 4, 17, 2):
        rng = np.random.default_rng(batch)
        shapes = {i.name: [d.dim_value or batch for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
        feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        for found, expected in zip(session(*feeds.values()), peer.run(None, feeds), strict=True):
            np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=TOLERANCE)
