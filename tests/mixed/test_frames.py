"""Frames on devices of drivers: imported once, read where they lie."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

import landbridge as lb
from landbridge.errors import FallbackWarning
from landbridge.targets import Target
from tests.devices.present import first_instance
from tests.devices.vulkan.conftest import make_api, use_api
from tests.memory.import_count import imported_ranges
from tests.session.test_frames import HEIGHT, PITCH, SPEC, WIDTH, camera, network, seen_of


def pages() -> np.ndarray:
    """Rows of PITCH bytes from the beginning of a page of their own, as drivers import them."""
    return np.frombuffer(mmap.mmap(-1, 4096), np.uint8)[: HEIGHT * PITCH].reshape(HEIGHT, PITCH)


def floats() -> np.ndarray:
    return np.frombuffer(mmap.mmap(-1, 4096), np.float32)[: 3 * HEIGHT * WIDTH].reshape(1, 3, HEIGHT, WIDTH)


@pytest.mark.filterwarnings(f"ignore::{FallbackWarning.__module__}.{FallbackWarning.__name__}")
@pytest.mark.parametrize("name", ["opencl", "vulkan"])
def test_a_pitched_frame_is_used_where_it_lies(name):
    device = first_instance(name)
    s = lb.Session(lb.compile(network(), Target.from_device(device), inputs={"x": SPEC}), device=device)
    frames, out = [camera(seed, pages()) for seed in range(3)], floats()
    s.register_buffers("x", frames)
    s.set_output_zero_copy(0, out)
    imported = imported_ranges(device)
    for frame in (*frames, *frames):
        with lb.ledger() as moves, lb.no_copies():
            s.set_input_zero_copy("x", frame)
            s.run()
        assert moves.total_bytes == 0
        np.testing.assert_array_equal(out, seen_of(frame))
    assert imported_ranges(device) == imported, "all of them were imported when they were registered"
    s.set_input("x", frames[1])
    s.run()
    np.testing.assert_array_equal(out, seen_of(frames[1]))


@pytest.mark.sample(2)
@pytest.mark.filterwarnings(f"ignore::{FallbackWarning.__module__}.{FallbackWarning.__name__}")
@pytest.mark.parametrize("name", ["opencl", "vulkan"])
@pytest.mark.parametrize("resize", ["nearest", "linear"])
def test_a_frame_is_resized_there(name, resize):
    device = first_instance(name)
    spec = lb.InputSpec("uint8", "NHWC", (1, 17, 31, 3), scale=(1.0, 2.0, 3.0), resize=resize)
    frame = np.random.default_rng(0).integers(0, 256, (1, 17, 31, 3)).astype(np.uint8)
    there = lb.Session(lb.compile(network(), Target.from_device(device), inputs={"x": spec}), device=device)
    here = lb.Session(lb.compile(network(), inputs={"x": spec}))
    there.set_input("x", frame)
    there.run()
    seen = np.asarray(there.get_output(0).to_device("cpu"))
    np.testing.assert_allclose(seen, np.asarray(here(frame)[0]), rtol=1e-6, atol=1e-4)


@pytest.mark.filterwarnings(f"ignore::{FallbackWarning.__module__}.{FallbackWarning.__name__}")
def test_a_frame_that_the_device_cannot_import_is_copied_with_its_gaps(monkeypatch: pytest.MonkeyPatch):
    """Inputs are the CPU's here, which takes any frame; the kernel that reads it is the device's, by pages alone."""
    device = use_api(make_api(coherent=False), monkeypatch)
    targets = {"cpu": Target("llvm"), "vulkan": Target.from_device(device)}
    executable = lb.compile(network(), targets, inputs={"x": SPEC}, place={"x:frame": "vulkan", "relu": "cpu"})
    s = lb.Session(executable, devices={"cpu": "cpu", "vulkan": device})
    rows = np.zeros(HEIGHT * PITCH + 1, np.uint8)[1:].reshape(HEIGHT, PITCH)
    frame = camera(0, rows)
    s.set_input_zero_copy("x", frame)
    for _ in range(2):
        with lb.ledger() as moves:
            s.run()
        span = (HEIGHT - 1) * PITCH + WIDTH * 3
        assert [(move.cause, move.nbytes) for move in moves if not move.is_kernel] == [("to_vdevice", span)]
        with s.get_output(0).host_view("r") as seen:
            np.testing.assert_array_equal(seen, seen_of(frame))
        frame += 1
