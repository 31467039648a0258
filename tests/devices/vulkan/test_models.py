"""Real models on a Vulkan device, alone and with the CPU, against onnxruntime's unoptimised session."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from wheel_models import CLASSIFY, PP_OCR, wheel_model

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import FallbackWarning
from landbridge.executable.executable import Executable
from landbridge.targets import Target
from tests.whole_models.random_weights import with_random_weights
from tests.whole_models.real_input import line_of_text, picture_for_detector, speech
from tests.whole_models.test_models import SILERO, TOLERANCE, reference

Array = np.ndarray[Any, Any]


def outputs(executable: Executable, device: Device, feeds: Mapping[str, Array]) -> list[Array]:
    session = lb.Session(executable, device=device)
    for name, value in feeds.items():
        session.set_input(name, value)
    session.run()
    return [np.array(session.get_output(i).to_device("cpu")) for i in range(len(executable.main.outputs))]


def close(found: list[Array], wanted: list[Array]) -> None:
    for got, right in zip(found, wanted, strict=True):
        assert got.shape == right.shape and got.dtype == right.dtype
        assert np.abs(right - got).max() <= TOLERANCE * np.abs(right).max()


def test_text_direction(plain: Device) -> None:
    x = line_of_text(48, 192)
    file = wheel_model(PP_OCR, CLASSIFY)
    executable = lb.compile(file, Target.from_device(plain), shapes={"x": x.shape})
    wanted = reference(file.read_bytes()).run(None, {"x": x})
    close(outputs(executable, plain, {"x": x}), wanted)


@pytest.mark.full
def test_text_direction_with_a_convolution_in_an_image(plain: Device) -> None:
    x, file, target = line_of_text(48, 192), wheel_model(PP_OCR, CLASSIFY), Target.from_device(plain)
    executable = lb.compile(file, target, shapes={"x": x.shape}, place={"Conv@0": "vulkan@global.texture[3,4]"})
    assert "global.texture" in {storage.scope for storage in executable.memory}
    wanted = reference(file.read_bytes()).run(None, {"x": x})
    close(outputs(executable, plain, {"x": x}), wanted)


@pytest.mark.full
def test_photo_classifier(plain: Device) -> None:
    x = picture_for_detector(224, 224)
    model = with_random_weights("squeezenet", {"data_0": x})
    wanted = reference(model.SerializeToString()).run(None, {"data_0": x})
    close(outputs(lb.compile(model, Target.from_device(plain)), plain, {"data_0": x}), wanted)


def test_speech_detector_with_the_cpu(plain: Device) -> None:
    """Its branches run on the CPU, in the device's memory."""
    file = wheel_model(SILERO, "silero_vad_op18_ifless.onnx")
    feeds = {
        "input": speech(64 + 2 * 512)[None, 512 : 512 + 576].copy(),
        "state": np.zeros((2, 1, 128), np.float32),
        "sr": np.array(16000, np.int64),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        executable = lb.compile(file, Target.from_device(plain), shapes={name: a.shape for name, a in feeds.items()})
    close(outputs(executable, plain, feeds), reference(file.read_bytes()).run(None, feeds))


@pytest.mark.full
def test_half_of_a_model_on_the_cpu(device: Device) -> None:
    """Nothing is copied in a run where both use one memory, coherent or not; else what crosses is."""
    x = line_of_text(48, 192)
    file = wheel_model(PP_OCR, CLASSIFY)
    executable = lb.compile(
        file,
        {"gpu": Target.from_device(device), "cpu": "llvm"},
        shapes={"x": x.shape},
        place={"HardSigmoid@*": "cpu", "Relu@*": "cpu"},
    )
    session = lb.Session(executable, devices={"gpu": device, "cpu": "cpu"})
    session.set_input("x", x)
    with lb.ledger() as moves:
        session.run()
    unified = device.memory_kind().host_access != "none"
    assert (moves.total_bytes == 0) == unified
    wanted = reference(file.read_bytes()).run(None, {"x": x})
    close([np.array(session.get_output(0).to_device("cpu"))], wanted)
