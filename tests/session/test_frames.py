"""Sessions whose inputs are frames: pitched memory used in place, copied into, overlapping, registered, saved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from tests.frontend.models import model, value
from tests.session.place import session, where

__all__ = ["where"]

HEIGHT, WIDTH, PITCH = 12, 20, 80  # the pitch in bytes, which are elements
SHAPE = (1, HEIGHT, WIDTH, 3)
SPEC = lb.InputSpec("uint8", "NHWC", strides=(HEIGHT * PITCH, PITCH, 3, 1), mean=(10, 20, 30), scale=0.5)


def network(count: int = 1) -> object:
    """``y = relu(x)`` of 1x3x12x20, and more inputs of it, whose sum it takes."""
    names = [f"x{i}" if i else "x" for i in range(count)]
    nodes = [
        helper.make_node("Sum", names, ["sum"], name="sum"),
        helper.make_node("Relu", ["sum"], ["y"], name="relu"),
    ]
    shape = (1, 3, HEIGHT, WIDTH)
    return model(nodes, [value(name, shape) for name in names], [value("y", shape, TensorProto.FLOAT)])


@pytest.fixture(scope="module")
def executable() -> lb.Executable:
    return lb.compile(network(), inputs={"x": SPEC})


def camera(seed: int = 0, memory: np.ndarray | None = None) -> np.ndarray:
    """A frame in rows of PITCH bytes: a view of memory that has more in each row."""
    rows = np.random.default_rng(seed).integers(0, 256, (HEIGHT, PITCH)).astype(np.uint8)
    if memory is not None:
        memory[...] = rows
        rows = memory
    frame = rows[:, : WIDTH * 3].reshape(SHAPE)
    assert np.may_share_memory(frame, rows)
    return frame


def seen_of(frame: np.ndarray) -> np.ndarray:
    return np.maximum((frame.astype(np.float32) - np.float32([10, 20, 30])) * 0.5, 0).transpose(0, 3, 1, 2)


def test_a_pitched_view_is_used_where_it_lies(executable):
    s, frame = session(executable), camera()
    with lb.ledger() as moves, lb.no_copies():
        s.set_input_zero_copy("x", frame)
        s.run()
    assert moves.total_bytes == 0
    np.testing.assert_array_equal(np.asarray(s.get_output(0)), seen_of(frame))
    frame[...] = camera(1)
    s.run()
    np.testing.assert_array_equal(np.asarray(s.get_output(0)), seen_of(camera(1)))
    bound = np.asarray(s.get_input("x"))
    assert (bound.ctypes.data, bound.strides[1:], bound.shape) == (frame.ctypes.data, (PITCH, 3, 1), SHAPE)


def test_as_a_cropped_array_of_pixels(executable):
    """The usual form: rows of whole pixels, of which the first ones are the picture."""
    wide = np.random.default_rng(2).integers(0, 256, (1, HEIGHT, WIDTH + 4, 3)).astype(np.uint8)
    spec = lb.InputSpec("uint8", "NHWC", strides=np.array(wide.strides) // wide.itemsize, mean=(10, 20, 30), scale=0.5)
    s = session(lb.compile(network(), inputs={"x": spec}))
    with lb.no_copies():
        s.set_input_zero_copy("x", wide[:, :, :WIDTH])
    s.run()
    np.testing.assert_array_equal(np.asarray(s.get_output(0)), seen_of(wide[:, :, :WIDTH]))


@pytest.mark.parametrize("form", ["array", "Tensor", "DLPack"])
def test_every_form_of_a_frame(executable, form):
    s, frame = session(executable), camera()
    given = {"array": frame, "Tensor": lb.asarray(frame), "DLPack": Producer(frame)}[form]
    with lb.no_copies():
        s.set_input_zero_copy("x", given)
    s.run()
    np.testing.assert_array_equal(np.asarray(s.get_output(0)), seen_of(frame))
    np.testing.assert_array_equal(np.asarray(s(given)[0]), seen_of(frame))


class Producer:
    """Memory of somebody else, by DLPack alone."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: object) -> object:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_set_input_takes_any_strides_and_copies_the_elements_alone(executable):
    s, frame = session(executable), camera()
    for given in (frame, np.ascontiguousarray(frame), np.asfortranarray(frame)):
        with lb.ledger() as moves:
            s.set_input("x", given)
        assert [(move.cause, move.nbytes) for move in moves] == [("set_input", frame.nbytes)]
        given = given.copy()
        s.run()
        np.testing.assert_array_equal(np.asarray(s.get_output(0)), seen_of(frame))


def test_memory_of_the_session_has_the_strides_of_a_frame(executable):
    owned = session(executable).get_input("x")
    assert (owned.shape, owned.strides, owned.dtype) == (SHAPE, SPEC.strides, "uint8")
    with owned.host_view("rw") as view:
        assert not view.any()


def test_other_strides_are_refused_and_what_was_bound_stays(executable):
    s, frame = session(executable), camera()
    s.set_input_zero_copy("x", frame)
    with pytest.raises(lb.ZeroCopyError, match=r"strides are \(720, 60, 3, 1\) elements, .* strides \(960, 80, 3, 1\)"):
        s.set_input_zero_copy("x", np.ascontiguousarray(camera(1)))
    with pytest.raises(lb.ZeroCopyError, match="in an InputSpec"):
        pixels = np.zeros((1, 12, 20, 3), np.float32)
        session(lb.compile(network())).set_input_zero_copy("x", pixels.transpose(0, 3, 1, 2))
    with pytest.raises(lb.InputError, match="dtype float32, it takes uint8"):
        s.set_input_zero_copy("x", frame.astype(np.float32))
    with pytest.raises(lb.InputError, match="shape"):
        s.set_input_zero_copy("x", frame[:, :6])
    s.run()
    np.testing.assert_array_equal(np.asarray(s.get_output(0)), seen_of(frame))


def test_axes_of_one_element_may_have_any_stride(executable):
    frame = np.lib.stride_tricks.as_strided(camera(), SHAPE, (8, PITCH, 3, 1))
    s = session(executable)
    s.set_input_zero_copy("x", frame)
    s.run()
    np.testing.assert_array_equal(np.asarray(s.get_output(0)), seen_of(frame))


def test_an_output_within_the_span_of_a_frame_overlaps_it(executable):
    memory = np.zeros(1 << 16, np.uint8)
    frame = camera(0, memory[: HEIGHT * PITCH].reshape(HEIGHT, PITCH))
    end = frame.ctypes.data - memory.ctypes.data + (HEIGHT - 1) * PITCH + WIDTH * 3
    s = session(executable)
    s.set_input_zero_copy("x", frame)
    floats = 4 * 3 * HEIGHT * WIDTH
    with pytest.raises(lb.InputError, match="would share 4 bytes"):
        s.set_output_zero_copy(0, memory[end - 4 : end - 4 + floats].view(np.float32).reshape(1, 3, HEIGHT, WIDTH))
    s.set_output_zero_copy(0, memory[end : end + floats].view(np.float32).reshape(1, 3, HEIGHT, WIDTH))
    wanted = seen_of(frame)
    s.run()
    np.testing.assert_array_equal(np.asarray(s.get_output(0)), wanted)


def test_buffers_that_rotate_are_registered_once(executable):
    s, frames = session(executable), [camera(seed) for seed in range(3)]
    s.register_buffers("x", frames)
    for _ in range(2):
        for frame in frames:
            with lb.no_copies():
                s.set_input_zero_copy("x", frame)
            s.run()
            np.testing.assert_array_equal(np.asarray(s.get_output(0)), seen_of(frame))


def test_two_frames_may_be_fields_of_one_buffer():
    """Interlaced: each field has every other row, so that their spans overlap, which inputs may."""
    spec = lb.InputSpec("uint8", "NHWC", strides=(2 * HEIGHT * PITCH, 2 * PITCH, 3, 1))
    s = session(lb.compile(network(2), inputs={"x": spec, "x1": spec}))
    rows = np.random.default_rng(3).integers(0, 256, (2 * HEIGHT, PITCH)).astype(np.uint8)
    fields = [
        np.lib.stride_tricks.as_strided(rows[first:], SHAPE, (2 * HEIGHT * PITCH, 2 * PITCH, 3, 1)) for first in (0, 1)
    ]
    with lb.no_copies():
        for name, field in zip(("x", "x1"), fields, strict=True):
            s.set_input_zero_copy(name, field)
    s.run()
    wanted = sum(field.astype(np.float32) for field in fields).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(np.asarray(s.get_output(0)), wanted)


def test_frames_are_in_the_file(executable, tmp_path):
    executable.save(tmp_path / "frames.lbx")
    loaded = lb.load(tmp_path / "frames.lbx")
    assert loaded.main.inputs == executable.main.inputs
    assert loaded.main.inputs[0].strides == SPEC.strides
    frame = camera()
    np.testing.assert_array_equal(np.asarray(session(loaded)(frame)[0]), seen_of(frame))


@pytest.mark.parametrize("strides", [(1,), (960, 80, 3, 1 << 62)])
def test_a_file_whose_strides_make_no_sense_is_refused(executable, strides):
    spec = replace(executable.main.inputs[0], strides=strides)
    broken = replace(executable, functions={"main": replace(executable.main, inputs=(spec,))})
    with pytest.raises(lb.BindError, match=r"strides|bytes"):
        session(broken)
