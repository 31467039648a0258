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


def _image(*shape: int) -> np.ndarray:
    batch, height, width = shape
    return np.random.default_rng(width).standard_normal((batch, 3, height, width)).astype(np.float32)
