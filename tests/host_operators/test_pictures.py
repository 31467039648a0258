"""ImageDecoder: pixels as a picture's file has them, and what is told where there are none."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import onnx
import pytest

import landbridge as lb
from tests.selection.installed import package

Image = package("PIL.Image", "test")
Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")


def model(pixel_format: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : 20]>
        g (uint8[n] file) => (float[h,w,c] y) {{
            pixels = ImageDecoder<pixel_format="{pixel_format}">(file)
            wide = Cast<to=1>(pixels)
            y = Relu(wide)
        }}"""
    )


def png(pixels: Array) -> Array:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return np.frombuffer(file.getvalue(), np.uint8)


@pytest.fixture
def pixels() -> Array:
    return np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)


def test_channels_lie_as_is_requested(pixels: Array) -> None:
    (rgb,) = lb.Session(lb.compile(model("RGB")))(png(pixels))
    np.testing.assert_array_equal(rgb, pixels)
    (bgr,) = lb.Session(lb.compile(model("BGR")))(png(pixels))
    np.testing.assert_array_equal(bgr, pixels[:, :, ::-1])
    (grey,) = lb.Session(lb.compile(model("Grayscale")))(png(pixels))
    # ITU-R 601 weights, rounded once.
    np.testing.assert_allclose(np.asarray(grey)[:, :, 0], pixels @ [0.299, 0.587, 0.114], atol=0.51)


def test_pictures_may_be_of_other_sizes(pixels: Array) -> None:
    session = lb.Session(lb.compile(model("RGB")))
    for part in (pixels, pixels[:2], pixels[:, :3]):
        (found,) = session(png(np.ascontiguousarray(part)))
        np.testing.assert_array_equal(found, part)
    (found,) = session(png(pixels[:, :, 0]))  # a grey one has its channel three times
    np.testing.assert_array_equal(found, np.repeat(pixels[:, :, :1], 3, 2))


def test_what_is_no_picture_is_reported(pixels: Array) -> None:
    session = lb.Session(lb.compile(model("RGB")))
    with pytest.raises(lb.LandbridgeError, match="not a picture of a format that Pillow knows"):
        session(np.arange(40, dtype=np.uint8))
    with pytest.raises(lb.LandbridgeError, match="cannot be decoded"):
        session(png(pixels)[:60].copy())


def test_without_pillow_the_compile_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("landbridge.host_operators.pictures.find_spec", lambda name: None)
    with pytest.raises(lb.UnsupportedOperatorError, match="pip install pillow"):
        lb.compile(model("RGB"))


def test_without_pillow_a_run_says_so(pixels: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    session, file = lb.Session(lb.compile(model("RGB"))), png(pixels)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(lb.LandbridgeError, match="pip install pillow"):
        session(file)
