"""Interpolation along open axes, by whole factors, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import landbridge as lb
from landbridge.errors import UnsupportedOperatorError
from tests.open_dimensions.models import Weights, model


def resizing(mode: str, transform: str, **attributes: int) -> lb.Executable:
    return lb.compile(_model(mode, transform, **attributes), dims={"H": "1..9", "W": "1..20"})


def _model(mode: str, transform: str, **attributes: int):
    w = Weights()
    scales = w.add(np.array([1, 1, 2, 3], np.float32))
    node = helper.make_node(
        "Resize", ["x", "", scales], ["y"], mode=mode, coordinate_transformation_mode=transform, **attributes
    )
    return model([node], w, {"x": [1, 2, "H", "W"]}, {"y": 4})


@pytest.mark.parametrize(
    ("mode", "transform"), [("linear", "half_pixel"), ("linear", "asymmetric"), ("cubic", "half_pixel")]
)
def test_interpolation_by_whole_factors(mode: str, transform: str) -> None:
    session = lb.Session(resizing(mode, transform))
    peer = onnxruntime.InferenceSession(_model(mode, transform).SerializeToString())
    for h, w in ((5, 7), (1, 20), (2, 1), (9, 3), (5, 7)):
        x = np.random.default_rng(h * w).standard_normal((1, 2, h, w)).astype(np.float32)
        (expected,) = peer.run(None, {"x": x})
        (found,) = session(x)
        assert found.shape == expected.shape
        assert np.abs(np.asarray(found) - expected).max() < 1e-5


@pytest.mark.parametrize(("transform", "attributes"), [("align_corners", {}), ("half_pixel", {"exclude_outside": 1})])
def test_weights_that_depend_on_the_extent(transform: str, attributes: dict[str, int]) -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"interpolates along H, .* its weights depend on the extent"):
        resizing("cubic", transform, **attributes)
