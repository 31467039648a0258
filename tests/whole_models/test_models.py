"""Real models on real input give what onnxruntime's unoptimised session gives."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from wheel_models import CLASSIFY, DETECT, PP_OCR, RECOGNIZE, wheel_model

import landbridge as lb
from tests.whole_models.random_weights import with_random_weights
from tests.whole_models.real_input import line_of_text, picture_for_detector, speech

TOLERANCE = 1e-4  # of the output's largest magnitude
SILERO = "silero-vad==6.2.3"


def reference(model: bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def check_equal(outputs: list[lb.Tensor], wanted: list[np.ndarray]) -> None:
    for got, right in zip(outputs, wanted, strict=True):
        array = np.asarray(got)
        assert array.shape == right.shape and array.dtype == right.dtype
        assert np.abs(right - array).max() <= TOLERANCE * np.abs(right).max()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "make_input", "size"),
    [
        (DETECT, picture_for_detector, (480, 640)),
        (DETECT, picture_for_detector, (320, 320)),
        (CLASSIFY, line_of_text, (48, 192)),
        (RECOGNIZE, line_of_text, (48, 320)),
    ],
    ids=["det-480x640", "det-320x320", "cls", "rec"],
)
def test_text_networks(name, make_input, size):
    x = make_input(*size)
    file = wheel_model(PP_OCR, name)
    session = lb.Session(lb.compile(file, shapes={"x": x.shape}), num_threads=2)
    wanted = reference(file.read_bytes()).run(None, {"x": x})
    assert wanted[0].std() > 0.01 * np.abs(wanted[0]).max()
    check_equal(session(x), wanted)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["squeezenet", "resnet50", "shufflenet"])
def test_photo_classifiers_with_random_weights(name):
    x = picture_for_detector(224, 224)
    input_name = "data_0" if name == "squeezenet" else "gpu_0/data_0"
    model = with_random_weights(name, {input_name: x})
    wanted = reference(model.SerializeToString()).run(None, {input_name: x})
    assert wanted[0].std() > 0.01 * wanted[0].max()
    check_equal(lb.Session(lb.compile(model), num_threads=2)(x), wanted)


def test_speech_detector_keeps_its_state():
    file = wheel_model(SILERO, "silero_vad_op18_ifless.onnx")
    shapes = {"input": (1, 576), "state": (2, 1, 128), "sr": ()}
    session, ort = lb.Session(lb.compile(file, shapes=shapes)), reference(file.read_bytes())
    rate = np.array(16000, np.int64)
    mine = theirs = np.zeros((2, 1, 128), np.float32)
    voice, probabilities = speech(64 + 24 * 512), []
    for step in range(24):
        window = voice[None, step * 512 : step * 512 + 576].copy()
        wanted = ort.run(None, {"input": window, "state": theirs, "sr": rate})
        outputs = session(*({"input": window, "state": mine, "sr": rate}[spec.name] for spec in session.inputs))
        check_equal(outputs, wanted)
        probabilities.append(float(wanted[0][0, 0]))
        mine, theirs = np.asarray(outputs[1]), wanted[1]
    assert max(probabilities) > 0.8  # there is a voice in it


def test_compiled_once_and_loaded_from_a_file(tmp_path):
    x = line_of_text(48, 192)
    lb.compile(wheel_model(PP_OCR, CLASSIFY), shapes={"x": x.shape}).save(tmp_path / "cls.lbx")
    loaded = lb.Session(lb.load(tmp_path / "cls.lbx"))
    check_equal(loaded(x), reference(wheel_model(PP_OCR, CLASSIFY).read_bytes()).run(None, {"x": x}))
