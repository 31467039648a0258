"""LabelEncoder of numbers beside onnxruntime: keys close together, far apart, of floats and with NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, helper, numpy_helper

import landbridge as lb

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(5)
INTEGERS = np.iinfo(np.int64)
KEYS = ([3], [5, 2, 9, 2], [-7, 0, 100], [INTEGERS.min, -1, INTEGERS.max], range(0, 99999, 1000))


def model(x: Array, version: int, result: type, **attributes: object) -> ModelProto:
    kinds = [helper.np_dtype_to_tensor_dtype(np.dtype(dtype)) for dtype in (x.dtype, result)]
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    inputs, outputs = ([helper.make_tensor_value_info(n, k, x.shape)] for n, k in zip("xy", kinds, strict=True))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(helper.make_graph([node], "labels", inputs, outputs), opset_imports=opsets, ir_version=8)


def check(made: ModelProto, x: Array, target: str = "llvm") -> None:
    """The same bits as onnxruntime's."""
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x})
    (found,) = lb.Session(lb.compile(made, target))(x)
    assert np.asarray(found).dtype == expected.dtype
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize(
    "keys", [[3], [5, 2, 9, 2], [-7, 0, 100], [INTEGERS.min, -1, INTEGERS.max], range(0, 99999, 1000)]
)
def test_integer_keys(keys: Any, target: str) -> None:
    keys = list(keys)
    x = np.array([*keys, *(k + 1 for k in keys if k < INTEGERS.max), -(10**12), INTEGERS.min, INTEGERS.max, 0])
    values = {"values_int64s": list(range(10, 10 + len(keys)))}
    check(model(x, 2, np.int64, keys_int64s=keys, default_int64=-5, **values), x, target)
    floats = {"values_floats": [float(v) / 4 for v in range(len(keys))]}
    check(model(x, 2, np.float32, keys_int64s=keys, default_float=0.5, **floats), x, target)
    check(model(x, 2, np.float32, keys_int64s=keys, **floats), x, target)


@pytest.mark.sample(4)
@pytest.mark.parametrize("count", [1, 2, 3, 16, 17, 100])
def test_float_keys(count: int) -> None:
    keys = RNG.permutation(np.linspace(-3, 3, count, dtype=np.float32)).tolist()
    x = np.array([[*keys, np.nan, np.inf, -np.inf, 0.1, 1e30]], np.float32)
    check(model(x, 2, np.int64, keys_floats=keys, values_int64s=list(range(count))), x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_key_of_nan(dtype: type) -> None:
    """From version 4 on a key of NaN is what elements of NaN are."""
    x = np.array([1, np.nan, 2, 7, -0.0, 0.0], dtype)
    tensors = {
        "keys_tensor": numpy_helper.from_array(np.array([np.nan, 1, 0], dtype)),
        "values_tensor": numpy_helper.from_array(np.array([5, 6, 7], dtype)),
        "default_tensor": numpy_helper.from_array(np.array([-4], dtype)),
    }
    check(model(x, 4, dtype, **tensors), x)


def test_only_nan_is_a_key() -> None:
    x = np.array([1, np.nan, 0], np.float32)
    check(model(x, 2, np.int64, keys_floats=[float("nan")], values_int64s=[5]), x)


def test_open_extents() -> None:
    x = np.array([3, 4, 9])
    made = model(x, 2, np.int64, keys_int64s=[3, 9], values_int64s=[30, 90])
    for value in (made.graph.input[0], made.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    session = lb.Session(lb.compile(made))
    for given in (x, np.array([9]), np.arange(40)):
        (found,) = session(given)
        np.testing.assert_array_equal(np.asarray(found), np.where(given == 3, 30, np.where(given == 9, 90, -1)))


def test_text_is_refused() -> None:
    x = np.array([3])
    with pytest.raises(lb.UnsupportedOperatorError, match="text"):
        lb.compile(model(x, 2, np.int64, keys_strings=["a"], values_int64s=[1]))
