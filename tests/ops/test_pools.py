"""Pools whose window is larger than the padded map: as in onnxruntime, for sizes that are known and for open ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import parser
from onnxruntime.capi.onnxruntime_pybind11_state import Fail

import landbridge as lb
from landbridge.errors import ShapeError


def _run(run: Any) -> list[np.ndarray] | None:
    """What ``run`` gives; None where it is refused."""
    try:
        return [np.asarray(each) for each in run()]
    except (ShapeError, Fail):
        return None


@pytest.mark.sample(4)
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize(
    "attributes", ["strides=[1]", "strides=[2]", "strides=[3], ceil_mode=1", "strides=[2], pads=[1,1]"]
)
def test_windows_that_do_not_fit(op: str, attributes: str) -> None:
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[1,2,n] x) => (float[1,2,m] y) {{ '
        f"y = {op}<kernel_shape=[4], {attributes}>(x) }}"
    )
    reference = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    session = lb.Session(lb.compile(model), num_threads=1)
    refused = 0
    for n in range(1, 7):
        x = np.random.default_rng(n).standard_normal((1, 2, n)).astype(np.float32)
        wanted = _run(lambda x=x: reference.run(None, {"x": x}))
        known = _run(lambda x=x: lb.Session(lb.compile(model, shapes={"x": x.shape}))(x))
        for found in (known, _run(lambda x=x: session(x))):
            if wanted is None or found is None:
                assert wanted is None and found is None, n
                refused += 1
                continue
            assert found[0].shape == wanted[0].shape
            np.testing.assert_allclose(found[0], wanted[0], 1e-5, 1e-6)
    assert refused < 6  # onnxruntime runs most of them


def test_positions_of_no_windows() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[1,2,3] x) => (float[1,2,m] y, int64[1,2,m] i) { '
        "y, i = MaxPool<kernel_shape=[4]>(x) }"
    )
    y, i = map(np.asarray, lb.Session(lb.compile(model))(np.ones((1, 2, 3), np.float32)))
    assert (y.shape, i.shape, i.dtype) == ((1, 2, 0), (1, 2, 0), np.int64)


def test_a_window_of_a_convolution_has_to_fit() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[1,1,3] x, float[1,1,4] w) => (float[1,1,m] y) { '
        "y = Conv(x, w) }"
    )
    with pytest.raises(ShapeError, match="does not fit"):
        lb.compile(model)
