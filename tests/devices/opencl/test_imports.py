"""Arrays of the application used in place: how they come in, how often, and for how long."""

from __future__ import annotations

import gc
import mmap

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import StorageInUseError, ZeroCopyError
from tests.memory.import_count import imported_ranges

from .test_modules import SOURCE
from .transfers import region


@pytest.fixture(autouse=True)
def importable(device: Device) -> None:
    if not device.memory_kind().importable:
        pytest.skip(f"{device} keeps a copy of imported memory")


@pytest.fixture(scope="module")
def module(device: Device) -> object:
    return device.api.load_module(device.index, SOURCE, "opencl-c")


def frame(count: int = 1024) -> np.ndarray:
    return np.frombuffer(mmap.mmap(-1, count * 4), np.float32)


def test_asarray_without_a_copy_is_the_same_memory(device: Device, module: object) -> None:
    array = frame()
    array[:] = 3
    with lb.no_copies():
        there = lb.asarray(array, device=device, copy=False)
    assert there.device == device
    device.api.launch(module, "scale", (16, 1, 1), (64, 1, 1), (region(there), 2.0, 1024), None)
    with there.host_view("rw") as view:
        assert view.ctypes.data == array.ctypes.data
        assert (array == 6).all()
        array[:] = 1
    assert (np.asarray(there.to_device("cpu")) == 1).all()


def test_the_array_lives_as_long_as_its_tensor(device: Device, module: object) -> None:
    array = frame()
    array[:] = 2
    there = lb.asarray(array, device=device, copy=False)
    del array
    gc.collect()
    device.api.launch(module, "scale", (16, 1, 1), (64, 1, 1), (region(there), 2.0, 1024), None)
    with there.host_view("r") as view:
        assert (view == 4).all()


def test_rotating_frames_are_imported_once(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = frame(4096).reshape(4, 1024)
    before = imported_ranges(device)
    calls = []
    imports = device.api.import_memory
    monkeypatch.setattr(device.api, "import_memory", lambda *args: calls.append(args) or imports(*args))
    for iteration in range(20):
        there = lb.asarray(ring[iteration % 4], device=device, copy=False)
        with there.host_view("w") as view:
            view[:] = iteration
    assert len(calls) == 4
    assert imported_ranges(device) == before + 4
    assert ring[:, 0].tolist() == [16, 17, 18, 19]
    del ring, there, view
    gc.collect()
    assert imported_ranges(device) == before


def test_memory_in_use_is_not_freed(device: Device) -> None:
    host = lb.empty((1024,), dtype="float32", device="cpu")
    there = lb.asarray(host, device=device, copy=False)
    with pytest.raises(StorageInUseError, match=r"an import by opencl:0"):
        host.storage.free()
    with there.host_view("w") as view:
        view[:] = 8
    assert np.asarray(host)[0] == 8
    del there, view
    gc.collect()
    host.storage.free()


def test_read_only_memory_stays_so(device: Device) -> None:
    array = frame()
    array.flags.writeable = False
    there = lb.asarray(array, device=device, copy=False)
    assert there.readonly
    with there.host_view("r") as view:
        assert not view.flags.writeable


def test_views_of_arrays_keep_their_strides(device: Device) -> None:
    array = frame().reshape(32, 32)
    array[:] = np.arange(1024).reshape(32, 32)
    there = lb.asarray(array[4:20:2, 8:16], device=device, copy=False)
    with there.host_view("r") as view:
        assert np.array_equal(view, array[4:20:2, 8:16])


def test_what_cannot_be_imported_is_reported(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    array = frame()
    with pytest.raises(ZeroCopyError, match=r"as float64 .* needs a copy"):
        lb.asarray(array, dtype="float64", device=device, copy=False)
    monkeypatch.setattr(device.api._instance(0), "import_alignment", 4096)
    address = array[1:].ctypes.data
    with pytest.raises(ZeroCopyError, match=rf"{address:#x}.*multiple of 4096 and is one of 4;"):
        lb.asarray(array[1:], device=device, copy=False)
    short = np.frombuffer(mmap.mmap(-1, 4096), np.uint8)[:100]
    with pytest.raises(ZeroCopyError, match=r"size must be a multiple of 64"):
        lb.asarray(short, device=device, copy=False)
    monkeypatch.setattr(device.api._instance(0), "import_alignment", 0)
    with pytest.raises(ZeroCopyError, match="keeps a copy of memory it did not allocate"):
        lb.asarray(frame(2048), device=device, copy=False)
