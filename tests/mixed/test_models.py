"""Models on OpenCL and Vulkan, alone and with the CPU, against onnxruntime's unoptimised session; no byte is copied."""

from __future__ import annotations

import numpy as np
import pytest
from wheel_models import CLASSIFY, DETECT, PP_OCR, wheel_model

import landbridge as lb
from landbridge.device.api import Device
from tests.devices.present import first_instance
from tests.mixed.test_mixed import page_aligned
from tests.whole_models.random_weights import with_random_weights
from tests.whole_models.real_input import line_of_text, picture_for_detector, speech
from tests.whole_models.test_models import SILERO, TOLERANCE, reference


@pytest.fixture(scope="module", params=["opencl", "vulkan"])
def device(request) -> Device:
    return first_instance(request.param)


def check(model, x: np.ndarray, name: str, device: Device, on_cpu: str | None) -> None:
    target = lb.Target.from_device(device)
    targets = {"npu": target, "cpu": "llvm"} if on_cpu else target
    exe = lb.compile(model, targets, shapes={name: x.shape}, place={on_cpu: "cpu"} if on_cpu else None)
    session = lb.Session(exe, devices={"npu": device}) if on_cpu else lb.Session(exe, device=device)
    frame = page_aligned(x.shape)
    frame[:] = x
    session.set_input_zero_copy(name, frame)
    with lb.ledger() as moves:
        session.run()
    assert [move for move in moves if not move.is_kernel] == []
    data = model.read_bytes() if hasattr(model, "read_bytes") else model.SerializeToString()
    (wanted,) = reference(data).run(None, {name: x})
    with session.get_output(0).host_view("r") as y:
        assert np.abs(wanted - y).max() <= TOLERANCE * np.abs(wanted).max()
    assert wanted.std() > 0.01 * np.abs(wanted).max()


@pytest.mark.full
@pytest.mark.parametrize("on_cpu", [None, "*[02468]"], ids=["alone", "mixed"])
def test_a_text_detector(device, on_cpu):
    check(wheel_model(PP_OCR, DETECT), picture_for_detector(64, 96), "x", device, on_cpu)


@pytest.mark.full
def test_classifiers_on_opencl_and_the_cpu():
    device = first_instance("opencl")
    check(wheel_model(PP_OCR, CLASSIFY), line_of_text(48, 192), "x", device, "*[02468]")
    x = picture_for_detector(224, 224)
    check(with_random_weights("squeezenet", {"data_0": x}), x, "data_0", device, "*1*")


@pytest.mark.filterwarnings("ignore::landbridge.errors.FallbackWarning")
def test_a_speech_detector_takes_its_branches_on_the_cpu(device):
    file = wheel_model(SILERO, "silero_vad_op18_ifless.onnx")
    feeds = {
        "input": speech(64 + 2 * 512)[None, 512 : 512 + 576].copy(),
        "state": np.zeros((2, 1, 128), np.float32),
        "sr": np.array(16000, np.int64),
    }
    exe = lb.compile(file, lb.Target.from_device(device), shapes={name: array.shape for name, array in feeds.items()})
    session = lb.Session(exe, device=device)
    for name, array in feeds.items():
        session.set_input(name, array)
    with lb.no_copies():
        session.run()
    for number, wanted in enumerate(reference(file.read_bytes()).run(None, feeds)):
        with session.get_output(number).host_view("r") as found:
            assert np.abs(wanted - found).max() <= TOLERANCE * np.abs(wanted).max()
