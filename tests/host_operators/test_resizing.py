"""Resize by factors that are computed, between kernels, against onnxruntime."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")
TRANSFORMS = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
FACTORS = [(1.0, 1.0), (1.7, 2.3), (0.65, 0.9), (3.1, 0.47)]


def model(attributes: str) -> onnx.ModelProto:
    """Resize of the absolute values of x by factors that are computed; what comes of it is halved."""
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 19]>
        g (float[1,2,5,7] x, float[8] roi, float[4] half) => (float[a,b,c,d] y) {{
            a0 = Abs(x)
            two = Constant<value_float=2.0>()
            scales = Mul(half, two)
            r = Resize<{attributes}>(a0, roi, scales)
            y = Div(r, two)
        }}"""
    )


def x_of(seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal((1, 2, 5, 7)).astype(np.float32)


@pytest.mark.sample(5)
@pytest.mark.parametrize(("mode", "transform"), list(product(("nearest", "linear", "cubic"), TRANSFORMS)))
def test_factors_may_be_computed(mode: str, transform: str) -> None:
    made = model(f'mode="{mode}", coordinate_transformation_mode="{transform}"')
    peer = onnxruntime.InferenceSession(made.SerializeToString())
    session = lb.Session(lb.compile(made), num_threads=1)
    roi = np.array([0, 0, 0.1, 0.25, 1, 1, 0.8, 0.75], np.float32)
    # Factors whose positions are no halves: which of two neighbours is the nearer would be a matter of rounding.
    for seed, (height, width) in enumerate(FACTORS):
        given = {"x": x_of(seed), "roi": roi, "half": np.array([0.5, 0.5, height / 2, width / 2], np.float32)}
        (wanted,) = peer.run(None, given)
        (found,) = session(*given.values())
        assert found.shape == wanted.shape
        # It sums taps in float32: 16 products, of weights up to 1 and values up to 3.
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_region_is_resized_as_a_kernel_does(mode: str) -> None:
    made = model(f'mode="{mode}", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=9.0')
    session = lb.Session(lb.compile(made), num_threads=1)
    roi = np.array([0, 0, -0.1, 0.25, 1, 1, 0.8, 1.2], np.float32)
    for height, width in FACTORS[1:3]:
        half = np.array([0.5, 0.5, height / 2, width / 2], np.float32)
        assert session(x_of(4), roi, half)[0].shape == (
            1,
            2,
            int(5 * height),
            int(7 * width),
        )  # not those of the region
        known = lb.compile(made, constants={"half": half, "roi": roi})
        assert not known.metadata.get("segments")
        (wanted,), (found,) = lb.Session(known)(x_of(4)), session(x_of(4), roi, half)
        assert found.shape == wanted.shape and (np.asarray(found) == 4.5).any()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_sizes_that_keep_the_aspect_ratio_may_be_computed(policy: str) -> None:
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 19]>
        g (float[1,1,6,8] x, int64[2] sizes) => (float[1,1,c,d] y) {{
            y = Resize<mode="linear", axes=[2,3], keep_aspect_ratio_policy="{policy}">(x, , , sizes)
        }}"""
    )
    peer = onnxruntime.InferenceSession(made.SerializeToString())
    session = lb.Session(lb.compile(made), num_threads=1)
    x = np.random.default_rng(3).standard_normal((1, 1, 6, 8)).astype(np.float32)
    for sizes in ([9, 7], [3, 16], [6, 8]):
        given = {"x": x, "sizes": np.array(sizes, np.int64)}
        (wanted,) = peer.run(None, given)
        (found,) = session(*given.values())
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)
