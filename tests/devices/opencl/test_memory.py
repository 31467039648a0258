"""Scopes: what each grants, and what it refuses."""

from __future__ import annotations

import ctypes
import mmap
import os

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Region
from landbridge.device.import_source import BusAddress, DmaBuf, HostPointer
from landbridge.device.protocols import NdSpaces
from landbridge.devices.opencl import attributes, mapping
from landbridge.devices.opencl.api import OpenCLDeviceAPI
from landbridge.errors import (
    HostViewError,
    InputError,
    OutOfMemoryError,
    UnsupportedError,
    UseAfterFreeError,
    ZeroCopyError,
)
from landbridge.targets import Target

from .test_modules import SOURCE
from .transfers import back, put, read, region


def svm_scope(device: Device) -> str:
    if "global.svm" not in device.memory_kinds:
        pytest.skip(f"{device} has no shared virtual memory")
    return "global.svm"


def test_the_target_of_the_device_has_its_memory(device: Device) -> None:
    target = Target.from_device(device)
    assert target.kind == "opencl"
    assert {kind.scope: kind for kind in target.memory} == dict(device.memory_kinds)
    if device.memory_kind().importable:
        assert ("cpu", "global") in target.shares
    assert Target.from_json(target.to_json()) == target


def test_an_allocation_over_max_bytes(device: Device) -> None:
    kind = device.memory_kind()
    assert kind.max_bytes is not None
    with pytest.raises(OutOfMemoryError, match=f"{kind.max_bytes + 1} bytes asked .* at most {kind.max_bytes}"):
        device.api.alloc_data_space(device.index, kind.max_bytes + 1, 1, "global", None)


def test_kernels_take_shared_pointers_at_any_element(device: Device) -> None:
    scope = svm_scope(device)
    module = device.api.load_module(device.index, SOURCE, "opencl-c")
    x = lb.empty((64,), dtype="float32", device=device, scope=scope)
    with x.host_view("w") as a:
        a[:] = 1
    at = region(x)
    part = Region(at.space, at.byte_offset + 4)
    device.api.launch(module, "scale", (1, 1, 1), (32, 1, 1), (part, 5.0, 32), None).synchronize()
    with x.host_view("r") as a:
        assert a.tolist() == [1] + [5] * 32 + [1] * 31


def test_fine_grained_memory_needs_no_view(device: Device) -> None:
    kind = device.memory_kind(svm_scope(device))
    if not kind.coherent:
        pytest.skip(f"shared virtual memory of {device} is coarse")
    x = lb.empty((8,), dtype="float32", device=device, scope="global.svm")
    np.asarray(x)[:] = 3
    module = device.api.load_module(device.index, SOURCE, "opencl-c")
    device.api.launch(module, "scale", (1, 1, 1), (8, 1, 1), (region(x), 2.0, 8), None).synchronize()
    assert np.asarray(x).tolist() == [6] * 8


@pytest.mark.parametrize("pair", [("global", "global.svm"), ("global.svm", "global")])
def test_the_device_copies_between_scopes(device: Device, pair: tuple[str, str]) -> None:
    svm_scope(device)
    source, target = (lb.empty((256,), dtype="uint8", device=device, scope=scope) for scope in pair)
    with source.host_view("w") as a:
        a[:] = np.arange(256)
    with target.host_view("w") as a:
        a[:] = 0
    start, stop = region(source), region(target)
    device.api.copy_data_from_to(
        Region(start.space, start.byte_offset + 3), Region(stop.space, stop.byte_offset + 100), 50, None, None
    ).synchronize()
    with target.host_view("r") as a:
        assert np.array_equal(a[100:150], np.arange(3, 53))
        assert not a[:100].any() and not a[150:].any()


def image_api(device: Device) -> NdSpaces:
    api = device.capability(NdSpaces)
    if "global.texture" not in device.memory_kinds or api is None:
        pytest.skip(f"{device} has no images")
    return api


IMAGE_SOURCE = b"""
kernel void brighten(read_only image2d_t from, write_only image2d_t to) {
    const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imagef(to, at, read_imagef(from, s, at) + (float4)(1, 2, 3, 4));
}
"""


def test_images_are_filled_computed_on_and_read(device: Device) -> None:
    api = image_api(device)
    spaces = [api.alloc_data_space_nd(device.index, (6, 5, 4), "float32", "global.texture", 1) for _ in range(2)]
    assert [space.row_pitch for space in spaces] == [80, 80]
    values = np.arange(120, dtype=np.float32).reshape(6, 5, 4)
    host = lb.asarray(values.copy())
    device.api.copy_data_from_to(region(host), Region(spaces[0]), values.nbytes, None, None).synchronize()
    module = device.api.load_module(device.index, IMAGE_SOURCE, "opencl-c")
    device.api.launch(module, "brighten", (5, 6, 1), (1, 1, 1), [Region(space) for space in spaces], None)
    flat = lb.empty((6, 5, 4), dtype="float32", device=device)
    device.api.copy_data_from_to(Region(spaces[1]), region(flat), values.nbytes, None, None).synchronize()
    assert np.array_equal(back(flat), values + np.array([1, 2, 3, 4]))
    row = lb.empty((2, 4), dtype="float32", device="cpu")
    third = spaces[1].row(3)
    device.api.copy_data_from_to(Region(third.space, third.byte_offset + 16), region(row), 32, None, None).synchronize()
    assert np.array_equal(np.asarray(row), (values + np.array([1, 2, 3, 4]))[3, 1:3])
    for space in spaces:
        device.api.free_data_space(space)


def test_tensors_lie_in_images(device: Device) -> None:
    image_api(device)
    values = np.arange(96, dtype=np.float32).reshape(2, 3, 4, 4)
    x = lb.asarray(values).to_device(device, scope="global.texture", axis_separators=(2, 3))
    assert x.storage.live_region.space.scope == "global.texture"
    assert np.array_equal(np.asarray(x.to_device("cpu")), values)


@pytest.mark.parametrize(
    ("shape", "dtype", "scope", "error"),
    [
        ((4, 4, 3), "float32", "global.texture", InputError),
        ((4, 4, 4), "float64", "global.texture", InputError),
        ((4, 4), "float32", "global.texture", InputError),
        ((1 << 20, 4, 4), "float32", "global.texture", InputError),
        ((4, 4, 4), "float32", "global", UnsupportedError),
    ],
)
def test_images_there_are_not(
    device: Device, shape: tuple[int, ...], dtype: str, scope: str, error: type[Exception]
) -> None:
    with pytest.raises(error, match="opencl:0"):
        image_api(device).alloc_data_space_nd(device.index, shape, dtype, scope, 1)


def test_bytes_of_images_are_whole_pixels(device: Device) -> None:
    space = image_api(device).alloc_data_space_nd(device.index, (4, 4, 4), "uint8", "global.texture", 1)
    host = lb.empty((64,), dtype="uint8", device="cpu")
    for offset, nbytes in ((2, 4), (0, 6), (8, 16), (0, 80)):
        with pytest.raises(InputError, match=r"whole rows, or whole pixels of one row"):
            device.api.copy_data_from_to(Region(space, offset), region(host), nbytes, None, None)
    with pytest.raises(UnsupportedError, match="holds images, not bytes"):
        device.api.alloc_data_space(device.index, 64, 1, "global.texture", None)
    device.api.free_data_space(space)


def test_use_after_free_of_spaces(device: Device) -> None:
    space = device.api.alloc_data_space(device.index, 64, 1, "global", None)
    host = lb.empty((64,), dtype="uint8", device="cpu")
    device.api.free_data_space(space)
    with pytest.raises(UseAfterFreeError, match="was freed before"):
        device.api.free_data_space(space)
    with pytest.raises(UseAfterFreeError, match="was freed"):
        device.api.copy_data_from_to(Region(space), region(host), 64, None, None)


@pytest.fixture
def visible(device: Device) -> None:
    if device.memory_kind().host_access == "none":
        pytest.skip(f"{device} has memory of its own")


@pytest.mark.usefixtures("visible")
def test_views_are_the_drivers_mapping(device: Device) -> None:
    """What the host writes through a view, a kernel reads, again and again, at one address."""
    module = device.api.load_module(device.index, SOURCE, "opencl-c")
    x = lb.empty((64,), dtype="float32", device=device, host_access="read_write")
    addresses = set()
    for iteration in range(1, 6):
        with x.host_view("w") as a:
            a[:] = iteration
            addresses.add(a.ctypes.data)
        device.api.launch(module, "scale", (1, 1, 1), (64, 1, 1), (region(x), 2.0, 64), None)
        with x.host_view("r") as a:
            assert (a == 2 * iteration).all()
    assert len(addresses) == 1


@pytest.mark.usefixtures("visible")
def test_a_lasting_view_with_barriers_of_ones_own(device: Device) -> None:
    module = device.api.load_module(device.index, SOURCE, "opencl-c")
    x = lb.empty((64,), dtype="float32", device=device, host_access="read_write")
    view = x.host_view("rw")
    a = np.asarray(view.tensor)
    for iteration in range(1, 4):
        view.invalidate()
        a[:] = iteration
        view.flush()
        device.api.launch(module, "scale", (1, 1, 1), (64, 1, 1), (region(x), 3.0, 64), None)
        view.invalidate()
        assert (a == 3 * iteration).all()
    view.close()


def imported(device: Device, array: np.ndarray, access: str = "rw") -> Region:
    source = HostPointer(array.ctypes.data, array.nbytes)
    return Region(device.api.import_memory(device.index, source, access))


def test_imports_are_the_owners_bytes(device: Device) -> None:
    if not device.memory_kind().importable:
        pytest.skip(f"{device} keeps a copy of imported memory")
    module = device.api.load_module(device.index, SOURCE, "opencl-c")
    array = np.frombuffer(bytearray(8192), np.float32)
    start = -array.ctypes.data % 4096 // 4
    frame = array[start:][:1024]
    frame[:] = 7
    with lb.no_copies():
        at = imported(device, frame)
        device.api.launch(module, "scale", (16, 1, 1), (64, 1, 1), (at, 2.0, 1024), None).synchronize()
        device.api.begin_host_access(at, frame.nbytes, "r")
        assert (frame == 14).all()
        device.api.end_host_access(at, frame.nbytes, "r")
        assert device.api.host_pointer(at.space) == frame.ctypes.data
        device.api.release_import(at.space)
    assert (frame == 14).all()


def test_files_are_imported_where_they_are_mapped(device: Device) -> None:
    if not device.memory_kind().importable:
        pytest.skip(f"{device} keeps a copy of imported memory")
    file = os.memfd_create("frame")
    os.ftruncate(file, 3 * mmap.PAGESIZE)
    seen = np.frombuffer(mmap.mmap(file, 3 * mmap.PAGESIZE), np.float32)
    seen[1024:2048] = 4
    space = device.api.import_memory(device.index, DmaBuf(file, mmap.PAGESIZE, 4096), "rw")
    os.close(file)
    module = device.api.load_module(device.index, SOURCE, "opencl-c")
    device.api.launch(module, "scale", (16, 1, 1), (64, 1, 1), (Region(space), 0.5, 1024), None).synchronize()
    assert (seen[1024:2048] == 2).all() and not seen[:1024].any()
    device.api.release_import(space)


def test_a_frame_behind_a_file_descriptor(device: Device) -> None:
    """As a camera hands it over: the descriptor is closed at once, the memory stays shared."""
    if not device.memory_kind().importable:
        pytest.skip(f"{device} keeps a copy of imported memory")
    file = os.memfd_create("frame")
    os.ftruncate(file, 4 * mmap.PAGESIZE)
    camera = np.frombuffer(mmap.mmap(file, 4 * mmap.PAGESIZE), np.float32)
    with lb.no_copies():
        frame = lb.from_dma_buf(file, (8, 64), "float32", device=device, offset=4096, strides=(128, 1))
    os.close(file)
    camera[:] = np.arange(4096)
    with frame.host_view("r") as array:
        assert np.array_equal(array, np.arange(4096).reshape(32, 128)[8:16, :64])


def test_memory_without_a_pointer_in_this_process(device: Device) -> None:
    with pytest.raises(ZeroCopyError, match="does not map it"):
        device.api.import_memory(device.index, BusAddress(0x1000, None, 64), "rw")
    with pytest.raises(ZeroCopyError, match="cannot map 64 bytes"):
        device.api.import_memory(device.index, DmaBuf(99999, 0, 64), "rw")


def test_images_have_no_address(device: Device) -> None:
    space = image_api(device).alloc_data_space_nd(device.index, (4, 4, 4), "uint8", "global.texture", 1)
    with pytest.raises((InputError, HostViewError), match="images"):
        device.api.host_pointer(space)
    device.api.free_data_space(space)


def test_a_wide_alignment_is_met(device: Device) -> None:
    for scope in ("global", svm_scope(device)):
        space = device.api.alloc_data_space(device.index, 1000, 1 << 14, scope, None)
        address = device.api.host_pointer(space)
        assert address % (1 << 14) == 0
        device.api.begin_host_access(Region(space), 1000, "w")
        ctypes.memset(address, 5, 1000)
        device.api.end_host_access(Region(space), 1000, "w")
        host = lb.empty((1000,), dtype="uint8", device="cpu")
        device.api.copy_data_from_to(Region(space), region(host), 1000, None, None).synchronize()
        assert (np.asarray(host) == 5).all()
        device.api.free_data_space(space)


def test_coarse_grained_memory_is_mapped(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on devices whose best shared virtual memory is coarse: clEnqueueSVMMap is the barrier."""
    svm_scope(device)
    monkeypatch.setattr(attributes, "svm", lambda found: "coarse")
    coarse = Device(OpenCLDeviceAPI(), 0)
    assert not coarse.memory_kind("global.svm").coherent
    module = coarse.api.load_module(0, SOURCE, "opencl-c")
    x = lb.empty((64,), dtype="float32", device=coarse, scope="global.svm")
    for iteration in range(1, 4):
        with x.host_view("w") as array:
            array[:] = iteration
        coarse.api.launch(module, "scale", (1, 1, 1), (32, 1, 1), (region(x), 2.0, 32), None)
        with x.host_view("r") as array:
            assert array.tolist() == [2 * iteration] * 32 + [iteration] * 32
    with pytest.raises(HostViewError, match="not host-readable coherent"):
        np.asarray(x)


def test_a_view_is_a_mapping_that_ends(device: Device) -> None:
    """Every mapping is undone, or the driver would keep it for ever."""
    x = lb.empty((64,), dtype="float32", device=device)
    if device.memory_kind().host_access == "none":
        pytest.skip(f"{device} has memory of its own")
    block = x.storage.live_region.space.handle
    with x.host_view("rw"):
        assert len(block.mappings) == 1
    assert not block.mappings
    x.host_view("r").invalidate()  # a lasting view: its mapping ends when the device is next given the memory
    assert len(block.mappings) == 1
    module = device.api.load_module(device.index, SOURCE, "opencl-c")
    device.api.launch(module, "scale", (1, 1, 1), (1, 1, 1), (region(x), 2.0, 0), None).synchronize()
    assert not block.mappings


def test_a_mapping_that_another_thread_ends_concurrently(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a pool share a buffer, all of whose mappings a command of another thread ends."""
    x = lb.empty((64,), dtype="float32", device=device)
    if device.memory_kind().host_access == "none":
        pytest.skip(f"{device} has memory of its own")
    covering = mapping._covering

    def and_end(block, *part):
        found = covering(block, *part)
        mapping.end_all(device.api._instance(device.index), block)
        return found

    with x.host_view("w") as array:
        array[:] = 5
        monkeypatch.setattr(mapping, "_covering", and_end)
    monkeypatch.undo()
    module = device.api.load_module(device.index, SOURCE, "opencl-c")
    device.api.launch(module, "scale", (1, 1, 1), (64, 1, 1), (region(x), 3.0, 64), None)
    assert read(x).tolist() == [15] * 64


def test_views_inside_what_is_mapped_already(device: Device) -> None:
    """One mapping at a time: reading a part leaves it, writing a part ends it, and the device sees what was written."""
    x = lb.empty((256,), dtype="float32", device=device)
    if device.memory_kind().host_access == "none":
        pytest.skip(f"{device} has memory of its own")
    put(x, 1)
    block = x.storage.live_region.space.handle
    device.api.begin_host_access(region(x), x.nbytes, "r")
    whole = set(block.mappings)
    part = lb.Tensor(x.storage, "float32", (64,), None, x.byte_offset + 128)
    with part.host_view("r") as array:
        assert set(block.mappings) == whole
        assert (array == 1).all()
    assert set(block.mappings) == whole
    with part.host_view("w") as array:
        array[:] = 2
    assert not block.mappings
    module = device.api.load_module(device.index, SOURCE, "opencl-c")
    device.api.launch(module, "scale", (4, 1, 1), (64, 1, 1), (region(x), 3.0, 256), None)
    assert read(x).tolist() == [3] * 32 + [6] * 64 + [3] * 160
