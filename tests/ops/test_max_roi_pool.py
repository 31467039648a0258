"""MaxRoiPool beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import landbridge as lb
from landbridge.dtypes import numpy_dtype

Array = np.ndarray[Any, Any]


def check(x: Array, rois: Array, open_regions: bool = False, **attributes: Any) -> None:
    node = helper.make_node("MaxRoiPool", ["x", "rois"], ["y"], **attributes)
    regions = "R" if open_regions else len(rois)
    inputs = [helper.make_tensor_value_info("x", 1, x.shape), helper.make_tensor_value_info("rois", 1, [regions, 5])]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", 1, [None] * 4)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    peer = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = lb.Session(lb.compile(model))(x, rois)
    np.testing.assert_array_equal(np.asarray(found), peer.run(None, {"x": x, "rois": rois})[0])


@pytest.mark.parametrize("scale", [1.0, 0.5, 0.0625])
def test_random_regions(scale: float) -> None:
    """Some outside of the image or turned round, some on halves of pixels."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 11, 13)).astype(np.float32)
    corners = np.round(rng.uniform(-6, 18, (30, 4)) * 2) / 2 / scale
    rois = np.c_[rng.integers(0, 2, 30), corners].astype(np.float32)
    check(x, rois, pooled_shape=[3, 4], spatial_scale=scale)


@pytest.mark.parametrize("dtype", ["float16", "float64", "bfloat16"])
def test_other_floats(dtype: str) -> None:
    kind, x = numpy_dtype(dtype), np.arange(16).reshape(1, 1, 4, 4)
    code, made = helper.np_dtype_to_tensor_dtype(kind), helper.make_tensor_value_info
    node = helper.make_node("MaxRoiPool", ["x", "rois"], ["y"], pooled_shape=[2, 2])
    inputs = [made("x", code, x.shape), made("rois", code, [1, 5])]
    graph = helper.make_graph([node], "g", inputs, [made("y", code, [1, 1, 2, 2])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    (found,) = lb.Session(lb.compile(model))(x.astype(kind), np.array([[0, 0, 0, 3, 2]], kind))
    assert np.asarray(found).astype(int).tolist() == [[[[5, 7], [9, 11]]]]


def test_numbers_that_are_none() -> None:
    x = np.full((1, 2, 4, 4), -np.inf, np.float32)
    x[0, 1, 1] = np.nan
    check(x, np.array([[0, 0, 0, 3, 3], [0, 8, 8, 9, 9]], np.float32), open_regions=True, pooled_shape=[2, 2])


def test_no_region() -> None:
    check(np.zeros((1, 1, 2, 2), np.float32), np.zeros((0, 5), np.float32), open_regions=True, pooled_shape=[1, 1])
