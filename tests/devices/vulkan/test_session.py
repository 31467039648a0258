"""Programs compiled for Vulkan, run by Sessions on the application's own arrays: as on every device that runs kernels.

The tests that say nothing of OpenCL are its own, on this device in each way of using it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device
from landbridge.devices.vulkan import VulkanDeviceAPI
from landbridge.errors import BindError, KernelBuildError, ZeroCopyError
from landbridge.executable.executable import Executable
from landbridge.targets import Target
from tests.devices.opencl.test_session import (
    SHAPE,
    exe,
    expected,
    frame,
    importable,
    model,
    test_a_saved_program_runs_on_the_device,
    test_by_value,
    test_calls_bind_their_arrays_for_themselves,
    test_registered_buffers_are_imported_at_once,
    test_rotating_frames_import_nothing_after_the_first_round,
    test_runs_in_the_background,
    test_sessions_of_many_threads,
    test_states_swap_without_a_copy,
    test_tensors_of_the_device,
    test_weights_of_the_session,
)
from tests.devices.opencl.transfers import read
from tests.devices.vulkan.conftest import VARIANTS, make_api

__all__ = [
    "exe",
    "importable",
    "test_a_saved_program_runs_on_the_device",
    "test_by_value",
    "test_calls_bind_their_arrays_for_themselves",
    "test_registered_buffers_are_imported_at_once",
    "test_rotating_frames_import_nothing_after_the_first_round",
    "test_runs_in_the_background",
    "test_sessions_of_many_threads",
    "test_states_swap_without_a_copy",
    "test_tensors_of_the_device",
    "test_weights_of_the_session",
]


@pytest.fixture(scope="module", params=VARIANTS)
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    api = make_api(**VARIANTS[request.param])
    yield Device(api, 0)
    api.close(0)


@pytest.mark.usefixtures("importable")
def test_the_applications_arrays_are_used_in_place(device: Device, exe: Executable) -> None:
    x, y = frame(1), frame(2)
    with lb.ledger() as moves:
        s = lb.Session(exe, device=device)
        s.set_input_zero_copy("x", x)
        s.set_output_zero_copy("y", y)
        for iteration in range(4):
            x[:] = np.random.default_rng(iteration).normal(0, 1, SHAPE)
            s.run()
            assert np.array_equal(y, expected(x))
    # Constants that are no mapped file lie where no driver imports them.
    assert {move.cause for move in moves.entries} <= {"constants:bind"}


def test_weights_of_a_file_are_copied_to_memory_that_the_host_reads_past_its_caches(
    plain: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a GPU's own memory is: what it imports lies behind a bus, over which each run would read them."""
    exe = lb.compile(model(), target=Target.from_device(plain))
    exe.save(tmp_path / "model.lbx")
    api = plain.api
    assert isinstance(api, VulkanDeviceAPI)
    kinds, x = api.logical(0).kinds, frame(1)
    weights = sum(array.nbytes for array in exe.constants.values())
    for cached in (True, False):
        monkeypatch.setitem(kinds, "global", replace(kinds["global"], cached=cached))
        with lb.ledger() as moves:
            s = lb.Session(lb.load(tmp_path / "model.lbx"), device=plain)
        assert sum(m.nbytes for m in moves.entries if m.cause == "constants:bind") == (0 if cached else weights)
        s.set_input("x", x)
        s.run()
        assert np.array_equal(read(s.get_output(0)), expected(x))


def test_an_array_anywhere_is_bound_where_memory_is_coherent_and_else_refused(device: Device, exe: Executable) -> None:
    s = lb.Session(exe, device=device)
    odd = np.zeros(SHAPE[0] * SHAPE[1] + 3, np.float32)[3:].reshape(SHAPE)
    if all(kind.coherent for kind in device.memory_kinds.values() if kind.importable):
        with lb.no_copies() if device.memory_kind().importable else nullcontext():
            s.set_input_zero_copy("x", odd)
            odd[:] = 2
            s.run()
        assert np.array_equal(read(s.get_output(0)), expected(odd))
        return
    with pytest.raises(ZeroCopyError, match=r"input 'x'.*multiples of 4096"):
        s.set_input_zero_copy("x", odd)
    with pytest.raises(ZeroCopyError, match=r"input 'x'.*multiples of 4096"):
        s(odd)
    with lb.ledger() as moves:
        s.set_input("x", odd)
    assert moves.total_bytes == odd.nbytes
    s.run()
    assert np.array_equal(read(s.get_output(0)), expected(odd))


def test_what_does_not_fit_is_reported(device: Device, exe: Executable) -> None:
    with pytest.raises(BindError, match=r"spirv, and cpu:0 runs none"):
        lb.Session(lb.compile(model(), target=Target.from_device(device), on_mismatch="copy"), device="cpu")
    (module,) = exe.modules
    assert not isinstance(module.image, lb.executable.parts.CodeImage)
    broken = replace(module, image=replace(module.image, code=b"no SPIR-V"))
    with pytest.raises(KernelBuildError, match="whole words"):
        lb.Session(replace(exe, modules=(broken,)), device=device)


def test_a_run_is_recorded_once(device: Device, exe: Executable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay submits one batch and records nothing, whichever frames it has seen are bound."""
    s = lb.Session(exe, device=device)
    frames = [frame(seed) for seed in range(2)]
    y = frame(3)
    s.set_output_zero_copy("y", y)
    for iteration in range(2):
        s.set_input_zero_copy("x", frames[iteration])
        s.run()
    api = device.api
    calls = api.logical(0).calls  # type: ignore[attr-defined]
    counts = {"vkQueueSubmit": 0, "vkCmdDispatch": 0, "vkUpdateDescriptorSets": 0}
    before = {}

    def counted(name: str) -> None:
        real = before[name] = getattr(calls, name)

        def call(*arguments: object) -> object:
            counts[name] += 1
            return real(*arguments)

        calls.replace(name, call)

    for name in counts:
        counted(name)
    try:
        for iteration in range(6):
            s.set_input_zero_copy("x", frames[iteration % 2])
            s.run()
            assert np.array_equal(y, expected(frames[iteration % 2]))
    finally:
        for name, real in before.items():
            calls.replace(name, real)
    assert counts == {"vkQueueSubmit": 6, "vkCmdDispatch": 0, "vkUpdateDescriptorSets": 0}
