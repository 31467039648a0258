"""DynamicQuantizeLSTM against onnxruntime, whose operator it is."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb

#: Of values below 1. Another rounding of a state that lies in the midst of two steps would be 1e-3 and more.
TOLERANCE = 1e-6


def network(directions: int, inputs: int, hidden: int, *, zeros: bool, columns: bool) -> onnx.ModelProto:
    """Of any number of steps and rows; ``zeros``: weights have zero points; ``columns``: a scale for each column."""
    rng, rows = np.random.default_rng(hidden), 4 * hidden
    kind = np.uint8 if zeros else np.int8
    low, high = np.iinfo(kind).min + 1, np.iinfo(kind).max + 1
    shape = (directions, rows) if columns else (directions,)
    made = {
        "w": rng.integers(low, high, (directions, inputs, rows)).astype(kind),
        "r": rng.integers(low, high, (directions, hidden, rows)).astype(kind),
        "b": (0.1 * rng.standard_normal((directions, 2 * rows))).astype(np.float32),
        "w_scale": (rng.uniform(0.5, 1, shape) / 127 / np.sqrt(inputs)).astype(np.float32),
        "r_scale": (rng.uniform(0.5, 1, shape) / 127 / np.sqrt(hidden)).astype(np.float32),
        "w_zero": np.full(shape, 128 if zeros else 0, kind),
        "r_zero": np.full(shape, 121 if zeros else 0, kind),
    }
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        ["x", "w", "r", "b", "", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"],
        ["y", "last", "cell"],
        domain="com.microsoft",
        hidden_size=hidden,
        direction="bidirectional" if directions == 2 else "reverse",
    )
    graph = helper.make_graph(
        [node],
        "quantized",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["T", "N", inputs])],
        [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * r)
            for n, r in (("y", 4), ("last", 3), ("cell", 3))
        ],
        [numpy_helper.from_array(array, name) for name, array in made.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def peer(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """On one thread: several share the rows of a batch, and each quantizes its own."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize(("zeros", "columns"), [(False, False), (True, False), (False, True)])
def test_each_step_quantizes_its_state(directions: int, zeros: bool, columns: bool, target: str) -> None:
    model = network(directions, 20, 32, zeros=zeros, columns=columns)
    session = lb.Session(lb.compile(model, target))
    reference = peer(model)
    for steps, batch in ((1, 1), (7, 3), (60, 1)):
        x = np.random.default_rng(steps).standard_normal((steps, batch, 20)).astype(np.float32)
        for found, wanted in zip(session(x), reference.run(None, {"x": x}), strict=True):
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=TOLERANCE)


def test_an_input_of_zeros_has_a_scale() -> None:
    model = network(1, 20, 32, zeros=False, columns=False)
    x = np.zeros((3, 1, 20), np.float32)
    expected = peer(model).run(None, {"x": x})
    for found, wanted in zip(lb.Session(lb.compile(model))(x), expected, strict=True):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=TOLERANCE)


@pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")
def test_weights_that_may_be_replaced_run_on_the_host() -> None:
    model = network(1, 20, 32, zeros=False, columns=False)
    session = lb.Session(lb.compile(model, mutable=["r"]))
    x = np.random.default_rng(5).standard_normal((4, 2, 20)).astype(np.float32)
    (weights,) = [each for each in model.graph.initializer if each.name == "r"]
    given = onnx.numpy_helper.to_array(weights)
    for values in (given, np.ascontiguousarray(given[..., ::-1])):
        session.set_params({"r": values})
        weights.CopyFrom(onnx.numpy_helper.from_array(values, "r"))
        for found, wanted in zip(session(x), peer(model).run(None, {"x": x}), strict=True):
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=TOLERANCE)
