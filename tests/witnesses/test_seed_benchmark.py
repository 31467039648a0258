"""The bytes of ``benchmarks/seed.py`` on small frames: the ledger's, and those of a preloaded counter."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import onnxruntime
import pytest

import landbridge as lb
from tests.devices.present import first_instance

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def seed() -> ModuleType:
    spec = importlib.util.spec_from_file_location("seed_benchmark", BENCHMARKS / "seed.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["seed_benchmark"] = module
    spec.loader.exec_module(module)
    return module


def device_named(name: str) -> lb.Device:
    return lb.device("cpu") if name == "cpu" else first_instance(name)


@pytest.mark.sample(2)
@pytest.mark.parametrize("frame_name", ["float32", "pitched uint8"])
@pytest.mark.parametrize("name", ["cpu", "opencl", "vulkan"])
def test_each_way_copies_what_its_name_says_and_gives_the_same(seed, name, frame_name):
    device, size = device_named(name), seed.Size(48, 64, 256)
    frame, specs = seed.frames(size)[frame_name]
    session, out = seed.bound_session(size, specs, device), seed.pages(size.planes, "float32")
    actions = seed.four_variants(session, frame, out)
    seed.check_bytes(actions, frame, out)
    model, x = seed.peer_models(size)[frame_name]
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    for way, action in actions.items():
        out[...] = np.nan
        action()
        np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4, err_msg=way)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["cpu", "opencl", "vulkan"])
def test_a_preloaded_counter_sees_no_copy_where_both_ends_are_in_place(seed, name):
    size = seed.Size(48, 64, 256)
    nbytes = 4 * int(np.prod(size.planes))
    counted = seed.preloaded_count(size, str(device_named(name)))
    assert counted == {frame: {"runs": 0, "memmove": nbytes - 64} for frame in ("float32", "pitched uint8")}
