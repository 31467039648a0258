"""Models of ai.onnx.ml and the quantized LSTM, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb
from landbridge.operators import REGISTRY, HostOperator

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")


def compare(
    node: onnx.NodeProto, inputs: dict[str, Array], outputs: list[tuple[int, int]],
    constants: dict[str, Array] | None = None, rtol: float = 1e-5,
) -> None:  # fmt: skip
    """``node`` on ``inputs``; ``outputs`` are (element type, rank)."""
    kind = onnx.helper.np_dtype_to_tensor_dtype
    dims = [[f"{name}_{i}" for i in range(rank)] for name, (_, rank) in zip(node.output, outputs, strict=True)]
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [onnx.helper.make_tensor_value_info(n, kind(a.dtype), ["N", *a.shape[1:]]) for n, a in inputs.items()],
        [onnx.helper.make_tensor_value_info(n, t, d) for n, (t, _), d in zip(node.output, outputs, dims, strict=True)],
        [onnx.numpy_helper.from_array(a, n) for n, a in (constants or {}).items()],
    )
    opsets = [
        onnx.helper.make_opsetid("", 17),
        onnx.helper.make_opsetid(node.domain, 1 if "ml" not in node.domain else 3),
    ]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # with several it quantizes the states of a batch row by row
    peer = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    expected = peer.run(None, inputs)
    session = lb.Session(lb.compile(model))
    for found, wanted in zip(session(*inputs.values()), expected, strict=True):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=rtol, atol=2e-6)
    if node.domain == "ai.onnx.ml":  # which have kernels, so that these functions are not asked
        operator = REGISTRY.find(HostOperator, node.domain, node.op_type, 5)
        assert operator is not None
        attributes = {each.name: _plain(onnx.helper.get_attribute_value(each)) for each in node.attribute}
        for found, wanted in zip(
            operator.bound(attributes)(*inputs.values(), *(constants or {}).values()), expected, strict=True
        ):
            np.testing.assert_allclose(found, wanted, rtol=rtol, atol=2e-6)


def _plain(value: Any) -> Any:
    """An attribute as host operators get it."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value).tolist()
    if isinstance(value, bytes):
        return value.decode()
    return [_plain(each) for each in value] if isinstance(value, list) else value


def ml(op_type: str, inputs: list[str], outputs: list[str], **attributes: Any) -> onnx.NodeProto:
    return onnx.helper.make_node(op_type, inputs, outputs, domain="ai.onnx.ml", **attributes)


def x_of(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.sample(2)
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_classifier(transform: str, classes: int) -> None:
    weights = x_of(classes, 4, seed=classes)
    node = ml(
        "LinearClassifier", ["x"], ["label", "scores"], classlabels_ints=[[0, 1], [4, 0, 2]][classes - 2],
        coefficients=weights.reshape(-1).tolist(), intercepts=weights[:, 0].tolist(), post_transform=transform,
    )  # fmt: skip
    compare(node, {"x": x_of(30, 4)}, [(7, 1), (1, 2)])


def test_linear_regressor() -> None:
    node = ml("LinearRegressor", ["x"], ["y"], coefficients=[1.0, -2.0, 0.5, 3.0], intercepts=[0.25, -1.0], targets=2)
    compare(node, {"x": x_of(9, 2)}, [(1, 2)])


def test_what_prepares_samples() -> None:
    x = x_of(6, 3)
    compare(ml("Scaler", ["x"], ["y"], offset=[1.0, 2.0, -1.0], scale=[0.5, 2.0, 1.0]), {"x": x}, [(1, 2)])
    compare(ml("Scaler", ["x"], ["y"], offset=[1.0], scale=[0.5]), {"x": x}, [(1, 2)])
    for norm in ("MAX", "L1", "L2"):
        compare(ml("Normalizer", ["x"], ["y"], norm=norm), {"x": np.abs(x)}, [(1, 2)])
    some = x.copy()
    some[2, 1] = np.nan
    compare(
        ml("Imputer", ["x"], ["y"], imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=float("nan")),
        {"x": some},
        [(1, 2)],
    )
    whole = np.arange(12, dtype=np.int64).reshape(4, 3) % 5
    imputed = ml("Imputer", ["x"], ["y"], imputed_value_int64s=[7, 8, 9], replaced_value_int64=3)
    compare(imputed, {"x": whole}, [(7, 2)])
    compare(ml("Scaler", ["x"], ["y"], offset=[1.0, 2.0, -1.0], scale=[0.5, 2.0, 1.0]), {"x": whole}, [(1, 2)])
    compare(ml("ArrayFeatureExtractor", ["x", "at"], ["y"]), {"x": x}, [(1, 2)], {"at": np.array([2, 0])})


@pytest.mark.sample(4)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_quantized_lstm(direction: str, by_column: bool, dtype: str) -> None:
    directions, batch, inputs, units = (2 if direction == "bidirectional" else 1), 2, 6, 8
    rng = np.random.default_rng(3)
    kind = np.dtype(dtype)
    ends = (0, 256) if dtype == "uint8" else (-127, 128)
    scale = (directions, 4 * units) if by_column else (directions,)
    constants = {
        "w": rng.integers(*ends, (directions, inputs, 4 * units)).astype(kind),
        "r": rng.integers(*ends, (directions, units, 4 * units)).astype(kind),
        "b": rng.standard_normal((directions, 8 * units)).astype(np.float32),
        "ws": (rng.random(scale) * 0.01 + 0.002).astype(np.float32),
        "wz": np.full(scale, 128 if dtype == "uint8" else 0, kind),
        "rs": (rng.random(scale) * 0.01 + 0.002).astype(np.float32),
        "rz": np.full(scale, 120 if dtype == "uint8" else 0, kind),
    }
    node = onnx.helper.make_node(
        "DynamicQuantizeLSTM", ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"], ["y", "h", "c"],
        domain="com.microsoft", hidden_size=units, direction=direction,
    )  # fmt: skip
    x = rng.standard_normal((11, batch, inputs)).astype(np.float32)
    compare(node, {"x": x}, [(1, 4), (1, 3), (1, 3)], constants, rtol=1e-4)
