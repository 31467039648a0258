"""Real models of every size: PP-OCR's, whose heights and widths are those of what is seen."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from wheel_models import CLASSIFY, DETECT, PP_OCR, RECOGNIZE, wheel_model

import landbridge as lb

pytestmark = pytest.mark.full

#: Largest difference to onnxruntime: sums of thousands of f32 products in another order, before a softmax or sigmoid.
TOLERANCE = 2e-5

SILERO = "silero-vad==6.2.3"

CASES = {
    "rec": (RECOGNIZE, (1, 3, 48, "W"), {"W": "32..2560:8@320"}, [(48, 8 * n) for n in range(4, 260, 4)]),
    "cls": (CLASSIFY, ("N", 3, 48, "W"), {"N": "1..8", "W": "16..640:8@192"}, [(48, 8 * n) for n in range(2, 81, 6)]),
    "det": (
        DETECT,
        (1, 3, "H", "W"),
        {"H": "32..1024:32@320", "W": "32..1024:32@320"},
        [(32, 32), (320, 320), (736, 480), (64, 1024), (1024, 32)],
    ),
}


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("name", CASES)
def test_every_size_is_right(name: str, target: str) -> None:
    file, shape, dims, sizes = CASES[name]
    model = wheel_model(PP_OCR, file)
    session = lb.Session(lb.compile(model, target, shapes={"x": shape}, dims=dims), num_threads=2)
    peer = onnxruntime.InferenceSession(str(model))
    for number, (height, width) in enumerate(sizes[:: 1 if target == "llvm" else 4]):
        batch = 1 + number % 3 if shape[0] == "N" else 1
        x = _image(batch, height, width)
        (found,), (expected,) = session(x), peer.run(None, {"x": x})
        array = np.from_dlpack(found)
        assert array.shape == expected.shape
        assert np.abs(array - expected).max() < TOLERANCE, (height, width)


AS_THEY_ARE = {
    "rec": (RECOGNIZE, [(1, 48, 5), (2, 33, 77), (1, 80, 320), (3, 48, 131)]),
    "cls": (CLASSIFY, [(1, 33, 3), (2, 48, 192), (1, 65, 100)]),
    "det": (DETECT, [(1, 32, 32), (2, 64, 96), (1, 320, 320)]),
}


@pytest.mark.parametrize("name", AS_THEY_ARE)
def test_files_as_they_are(name: str) -> None:
    file, sizes = AS_THEY_ARE[name]
    model = wheel_model(PP_OCR, file)
    session, peer = lb.Session(lb.compile(model)), onnxruntime.InferenceSession(str(model))
    for size in sizes:
        x = _image(*size)
        (found,), (expected,) = session(x), peer.run(None, {"x": x})
        assert np.abs(np.from_dlpack(found) - expected).max() < TOLERANCE, size
    with pytest.raises(lb.ShapeError, match=r"axis 2 of input 'x' is 31; legal: .* in 3[23]"):
        session(_image(1, 31, 64))


@pytest.mark.parametrize("samples", [192, 512, 703])
def test_a_voice_detector_as_it_is(samples: int) -> None:
    model = wheel_model(SILERO, "silero_vad_16k_op15.onnx")
    session = lb.Session(lb.compile(model))
    peer = onnxruntime.InferenceSession(str(model))
    rng = np.random.default_rng(samples)
    given = {
        "input": rng.standard_normal((2, samples)).astype(np.float32),
        "state": rng.standard_normal((2, 2, 128)).astype(np.float32),
        "sr": np.array(16000, np.int64),
    }
    for name, array in given.items():
        session.set_input(name, array)
    session.run()
    for number, expected in enumerate(peer.run(None, given)):
        largest = max(np.abs(expected).max(), 1)  # cells of the state are sums, up to 3.3 here
        assert np.abs(np.from_dlpack(session.get_output(number)) - expected).max() < TOLERANCE * largest


def _image(*shape: int) -> np.ndarray:
    batch, height, width = shape
    return np.random.default_rng(width).standard_normal((batch, 3, height, width)).astype(np.float32)
