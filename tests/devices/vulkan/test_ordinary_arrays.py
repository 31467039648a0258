"""Arrays as numpy makes them, at any offset, are inputs and outputs of a device in place; bytes around them stay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import InputError
from tests.devices.present import first_instance
from tests.frontend.models import model, value
from tests.memory.import_count import imported_ranges

ELEMENTS = 1500
WHOLE = 5 * 1024


@pytest.fixture(scope="module", params=["vulkan", "opencl"])
def device(request: pytest.FixtureRequest) -> Device:
    return first_instance(request.param)


@pytest.fixture(scope="module")
def negation(device: Device) -> Callable[..., lb.Session]:
    """A Session that negates float32 of a shape, which is compiled once."""

    def session_of(shape: list[int]) -> lb.Session:
        nodes = [helper.make_node("Neg", ["x"], ["y"])]
        ends = [value(name, shape, TensorProto.FLOAT) for name in "xy"]
        proto = model(nodes, ends[:1], ends[1:])
        return lb.Session(lb.compile(proto, target=lb.Target.from_device(device)), device=device)

    made: dict[tuple[int, ...], lb.Session] = {}
    return lambda *shape: made.get(shape) or made.setdefault(shape, session_of(list(shape)))


@settings(max_examples=8)
@given(st.integers(0, WHOLE - ELEMENTS), st.integers(0, WHOLE - ELEMENTS))
def test_any_two_parts_of_an_array(negation: Callable[..., lb.Session], first: int, second: int) -> None:
    session = negation(ELEMENTS)
    around = np.arange(WHOLE, dtype=np.float32)
    x, y = around[first : first + ELEMENTS], around[second : second + ELEMENTS]
    with lb.no_copies():
        session.set_input_zero_copy("x", x)
        if abs(first - second) < ELEMENTS:
            with pytest.raises(InputError, match=f"share {4 * (ELEMENTS - abs(first - second))} bytes"):
                session.set_output_zero_copy("y", y)
            return
        session.set_output_zero_copy("y", y)
        session.run()
        x += 1  # between runs it is the host's
        session.run()
    wanted = np.arange(WHOLE, dtype=np.float32)
    wanted[first : first + ELEMENTS] += 1
    wanted[second : second + ELEMENTS] = -wanted[first : first + ELEMENTS]
    np.testing.assert_array_equal(around, wanted)


def test_a_frame_of_a_camera_and_a_result_that_numpy_allocated(negation: Callable[..., lb.Session]) -> None:
    shape = (1, 3, 1080, 1920)
    session = negation(*shape)
    frame, result = np.zeros(shape, np.float32), np.empty(shape, np.float32)
    with lb.no_copies():
        session.set_input_zero_copy("x", frame)
        session.set_output_zero_copy("y", result)
        frame[...] = 3
        session.run()
    assert (result == -3).all()


def test_a_part_of_what_is_imported_is_not_imported_again(device: Device) -> None:
    around = np.zeros(WHOLE, np.float32)
    alignment = max(kind.offset_alignment for kind in device.memory_kinds.values() if kind.importable)
    inside = alignment // 4
    whole = lb.asarray(around, device=device, copy=False)
    before = imported_ranges(device)
    part = lb.asarray(around[inside : inside + 100], device=device, copy=False)
    assert imported_ranges(device) == before
    assert part.storage.part()[0] is whole.storage.part()[0]
    around[inside] = 7
    assert np.asarray(part.to_device("cpu")).flat[0] == 7
    shifted = lb.asarray(around[inside + 1 : WHOLE], device=device, copy=False)  # overlaps, and knows of the others
    assert shifted.storage.part()[0] is whole.storage.part()[0]
    del whole, part, shifted, around
    assert imported_ranges(device) < before
