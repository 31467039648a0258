"""How many functions of machine code whole networks are made of."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
import pytest

import landbridge as lb
from landbridge.executable.instructions import Call, flattened
from tests.whole_models.random_weights import LIGHT_MODELS

#: Counts depend on the vectors that schedules are made for.
TARGET = "llvm -mcpu=x86-64-v4"


def _resnet50() -> Path:
    return LIGHT_MODELS / "light_resnet50.onnx"


def _det() -> Path:
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "ocr"))
    try:
        from wheel_models import DETECT, PP_OCR, wheel_model
    finally:
        del sys.path[0]
    file: Path = wheel_model(PP_OCR, DETECT)
    return file


@pytest.mark.full
@pytest.mark.parametrize(
    ("model", "shape", "alone"),
    [
        # What they were made of before kernels that differ in numbers shared code.
        pytest.param(_resnet50, (1, 3, 224, 224), 32, id="resnet50"),
        pytest.param(_det, (1, 3, 320, 320), 77, id="PP-OCRv4-det"),
    ],
)
def test_a_network_is_of_three_tenths_fewer_functions(model, shape, alone):
    file = model()
    name = onnx.load(file, load_external_data=False).graph.input[0].name
    executable = lb.compile(file, TARGET, shapes={name: shape})
    called = [each.function for each in flattened(executable.main.instructions) if isinstance(each, Call)]
    assert len(set(called)) <= 0.7 * alone
    assert len(called) > len(set(called))
