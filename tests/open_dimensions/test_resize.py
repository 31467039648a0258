"""Resize along open axes, against onnxruntime and programs of known shapes."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, helper

import landbridge as lb
from tests.open_dimensions.models import Weights, model


@pytest.mark.parametrize(
    ("mode", "transform"), [("linear", "half_pixel"), ("linear", "asymmetric"), ("cubic", "half_pixel")]
)
def test_interpolation_by_whole_factors(mode: str, transform: str) -> None:
    proto = _to(mode, transform, scales=[1, 1, 2, 3])
    session = lb.Session(lb.compile(proto, dims={"H": "1..9", "W": "1..20"}))
    peer = onnxruntime.InferenceSession(proto.SerializeToString())
    for h, w in ((5, 7), (1, 20), (2, 1), (9, 3), (5, 7)):
        x = np.random.default_rng(h * w).standard_normal((1, 2, h, w)).astype(np.float32)
        (expected,) = peer.run(None, {"x": x})
        (found,) = session(x)
        assert found.shape == expected.shape
        assert np.abs(np.asarray(found) - expected).max() < 1e-5


TRANSFORMS = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
KINDS = {
    "one and a half": {"scales": [1, 1, 1.5, 1.25]},
    "smaller": {"scales": [1, 1, 0.5, 0.75]},
    "to one size": {"sizes": [1, 2, 11, 6]},
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_any_factor(mode: str, transform: str, kind: str, target: str) -> None:
    proto = _to(mode, transform, **KINDS[kind])
    session = lb.Session(lb.compile(proto, target, dims={"H": "2..30", "W": "2..40"}))
    peer = onnxruntime.InferenceSession(proto.SerializeToString())
    for h, w in ((5, 7), (2, 40), (30, 2), (11, 6)):
        x = np.random.default_rng(h * w).standard_normal((1, 2, h, w)).astype(np.float32)
        found = np.asarray(session(x)[0])
        # Where two elements are equally near onnxruntime, in f32, takes either.
        theirs = mode != "nearest"
        if theirs:
            (expected,) = peer.run(None, {"x": x})
            assert found.shape == expected.shape
            assert np.abs(found - expected).max() < 2e-5
        if not theirs or (h, w) == (5, 7):  # a compile for each size is most of the time
            known = np.asarray(lb.Session(lb.compile(proto, target, shapes={"x": x.shape}))(x)[0])
            np.testing.assert_allclose(found, known, rtol=0, atol=1e-6)


RARER = [
    ("cubic", "half_pixel", {"exclude_outside": 1}),
    *(
        (mode, transform, {})
        for mode in ("nearest", "linear", "cubic")
        for transform in ("tf_crop_and_resize", "half_pixel_symmetric")
    ),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("mode", "transform", "others"), RARER)
def test_rarer_forms_are_those_of_a_known_shape(mode: str, transform: str, others: dict[str, int]) -> None:
    proto = _to(mode, transform, scales=[1, 1, 1.5, 0.6], **others)
    session = lb.Session(lb.compile(proto, dims={"H": "2..30", "W": "2..40"}))
    for h, w in ((5, 7), (2, 40), (30, 2)):
        x = np.random.default_rng(h * w).standard_normal((1, 2, h, w)).astype(np.float32)
        known = lb.Session(lb.compile(proto, shapes={"x": x.shape}))(x)[0]
        np.testing.assert_allclose(np.asarray(session(x)[0]), np.asarray(known), rtol=0, atol=1e-6)


def test_a_number_of_taps_that_is_open() -> None:
    w = Weights()
    sizes = w.ints(1, 2, 8, 8)
    node = helper.make_node("Resize", ["x", "", "", sizes], ["y"], mode="linear", antialias=1)
    proto = model([node], w, {"x": [1, 2, "H", "W"]}, {"y": 4}, opset=18)
    with pytest.warns(lb.FallbackWarning, match="on the host as numpy functions, not as kernels: ai.onnx.Resize"):
        session = lb.Session(lb.compile(proto))
    for height, width in ((5, 30), (17, 8)):
        x = np.random.default_rng(height).standard_normal((1, 2, height, width)).astype(np.float32)
        known = lb.Session(lb.compile(proto, shapes={"x": x.shape}))(x)[0]
        np.testing.assert_allclose(np.asarray(session(x)[0]), np.asarray(known), rtol=0, atol=1e-6)


def _to(mode: str, transform: str, scales: list[float] = (), sizes: list[int] = (), **attributes: int) -> ModelProto:
    """A Resize by ``scales`` or to ``sizes``, of a region where ``transform`` takes one."""
    w = Weights()
    roi = w.add(np.array([0, 0, -0.1, 0.2, 1, 1, 0.8, 1.1], np.float32)) if transform == "tf_crop_and_resize" else ""
    how = ["x", roi, w.add(np.array(scales, np.float32))] if len(scales) else ["x", roi, "", w.ints(*sizes)]
    named = {"mode": mode, "coordinate_transformation_mode": transform, **attributes}
    return model([helper.make_node("Resize", how, ["y"], **named)], w, {"x": [1, 2, "H", "W"]}, {"y": 4})
