"""The main job on every built-in device: sanitized it gives the same numbers, and nothing is found."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from wheel_models import CLASSIFY, DETECT, PP_OCR, wheel_model

import landbridge as lb
from landbridge.device import registry
from landbridge.sanitizer import check_all, findings
from tests.devices.cma.test_cma import Board
from tests.devices.present import first_instance

DEVICES = ("cpu", "opencl", "vulkan", "cma", "sim:lazy", "sim:scratch", "sim:board")
MODELS = [
    pytest.param(CLASSIFY, (1, 3, 48, 96), id="cls"),
    pytest.param(DETECT, (1, 3, 96, 96), id="det", marks=pytest.mark.full),
]


@pytest.fixture(params=DEVICES)
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a device that is there; of ``cma``, one whose source is files of this process."""
    if request.param != "cma":
        if request.param in ("opencl", "vulkan"):
            first_instance(request.param)
        yield request.param
        return
    registry.register(Board())
    yield Board.name
    registry.unregister(Board.name)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "shape"), MODELS)
def test_it_is_silent_and_gives_the_same(name: str, model: str, shape: tuple[int, ...]) -> None:
    frames = [np.random.default_rng(seed).random(shape, np.float32) for seed in range(2)]
    target = name if name in ("opencl", "vulkan") else "llvm"
    executable = lb.compile(wheel_model(PP_OCR, model), target, shapes={"x": shape}, on_mismatch="copy")
    outputs = []
    for device in (name, f"sanitize({name})"):
        session = lb.Session(executable, device=device)
        of_device = []
        for frame in frames:
            session.set_input("x", frame)
            session.run()
            of_device.append(np.asarray(session.get_output(0).to_device("cpu")).copy())
        outputs.append(of_device)
    assert not np.array_equal(*outputs[0])
    for plain, sanitized in zip(*outputs, strict=True):
        assert np.array_equal(plain, sanitized)
    del session
    check_all()
    assert findings() == ()
