"""Frames of sizes that are known when they come, against programs of one size, and numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import landbridge as lb
from tests.open_dimensions.models import Weights, convolutions, model


def _identity():
    return model([helper.make_node("Identity", ["x"], ["y"])], Weights(), {"x": ["N", 3, "H", "W"]}, {"y": 4})


def _frame(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, 256, shape, dtype=np.uint8)


def _camera(**more) -> dict[str, lb.InputSpec]:
    return {"x": lb.InputSpec("uint8", "NHWC", mean=(104.0, 117.0, 123.0), scale=1 / 255, **more)}


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_frames_are_as_large_as_what_the_model_takes(target: str) -> None:
    executable = lb.compile(convolutions(), target, inputs=_camera(), dims={"N": "1..4", "H": "8..64", "W": "8..64"})
    spec = executable.main.inputs[0]
    assert (spec.dtype, str(spec.shape)) == ("uint8", "(N, H, W, 3)")
    session = lb.Session(executable)
    for size in ((1, 8, 8), (2, 33, 17), (1, 64, 48), (4, 9, 64)):
        frame = _frame(*size, 3)
        known = lb.Session(lb.compile(convolutions(), target, inputs=_camera(shape=frame.shape)))
        with lb.ledger() as moves:
            session.set_input_zero_copy("x", frame)
            session.run()
        assert not moves.total_bytes
        np.testing.assert_allclose(np.asarray(session.get_output(0)), np.asarray(known(frame)[0]), rtol=0, atol=1e-5)


@pytest.mark.sample(2)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("resize", ["nearest", "linear"])
def test_frames_of_any_size_become_one(resize: str, target: str) -> None:
    given = {"shapes": {"x": (1, 3, 32, 40)}, "dims": {"FH": "1..100", "FW": "1..100"}}
    executable = lb.compile(_identity(), target, inputs=_camera(shape=(1, "FH", "FW", 3), resize=resize), **given)
    session = lb.Session(executable)
    for size in ((48, 64), (32, 40), (1, 1), (100, 3), (17, 80)):
        frame = _frame(1, *size, 3)
        one = _camera(shape=frame.shape, resize=resize)
        known = lb.Session(lb.compile(_identity(), target, shapes=given["shapes"], inputs=one))
        np.testing.assert_allclose(np.asarray(session(frame)[0]), np.asarray(known(frame)[0]), rtol=0, atol=1e-6)


def test_rows_with_a_pitch() -> None:
    pitch = 640
    executable = lb.compile(
        _identity(), inputs=_camera(shape=("N", "H", "W", 3), strides=(pitch * 80, pitch, 3, 1)), dims={"H": "1..80"}
    )
    session = lb.Session(executable)
    memory = _frame(2, 80, pitch)
    for h, w in ((80, 213), (5, 7), (1, 1)):
        frame = np.lib.stride_tricks.as_strided(memory, (2, h, w, 3), (pitch * 80, pitch, 3, 1))
        wanted = (frame.transpose(0, 3, 1, 2) - np.float32([104, 117, 123])[:, None, None]) * np.float32(1 / 255)
        session.set_input_zero_copy("x", frame)
        session.run()
        np.testing.assert_allclose(np.asarray(session.get_output(0)), wanted, rtol=1e-6, atol=1e-6)
    with pytest.raises(lb.ShapeError, match=r"axis 2 of input 'x' is 214; legal: W, with W in 1\.\.213"):
        session(_frame(1, 5, 214, 3))


def test_a_file_keeps_open_frames(tmp_path: Path) -> None:
    executable = lb.compile(
        _identity(),
        shapes={"x": (1, 3, 8, 8)},
        inputs=_camera(shape=(1, "FH", "FW", 3), resize="linear"),
        dims={"FH": "1..64", "FW": "1..64"},
    )
    executable.save(tmp_path / "x.lbx")
    frame = _frame(1, 20, 31, 3)
    (retained,), (made,) = (lb.Session(e)(frame) for e in (lb.load(tmp_path / "x.lbx"), executable))
    np.testing.assert_array_equal(np.asarray(retained), np.asarray(made))


def test_a_size_that_no_frame_says() -> None:
    with pytest.raises(lb.InputError, match=r"no frame says what '[HW]' is.*shapes="):
        lb.compile(_identity(), shapes={"x": (1, 3, "H", "W")}, inputs=_camera(shape=(1, 480, 640, 3), resize="linear"))
    with pytest.raises(lb.ShapeError, match="'FH \\+' is not a size"):
        lb.compile(_identity(), shapes={"x": (1, 3, 8, 8)}, inputs=_camera(shape=(1, "FH +", 8, 3), resize="linear"))
