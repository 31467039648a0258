"""Memory: what both sides use, imports of host memory, and what is refused before the driver sees it."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import weakref
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Region, Space
from landbridge.device.import_source import BusAddress, DmaBuf, HostPointer
from landbridge.devices.vulkan import VulkanDeviceAPI, flags
from landbridge.errors import (
    HostViewError,
    InputError,
    OutOfMemoryError,
    StorageInUseError,
    UseAfterFreeError,
    ZeroCopyError,
)
from landbridge.targets import Target
from tests.devices.vulkan.conftest import make_api, use_api
from tests.devices.vulkan.test_modules import api_of, back


def pages(count: int) -> np.ndarray:
    """``count`` pages of zeros from mmap, as an array of bytes."""
    return np.frombuffer(mmap.mmap(-1, count * mmap.PAGESIZE), np.uint8)


def test_memory_that_both_sides_use(device: Device) -> None:
    with lb.no_copies():
        t = lb.empty((3, 5), dtype="float32", device=device, host_access="rw")
        with t.host_view("w") as a:
            a[:] = np.arange(15).reshape(3, 5)
        with t.host_view("rw") as a:
            a += 1
        with t.host_view("r") as a:
            assert (a == np.arange(1, 16).reshape(3, 5)).all()
    assert (back(t) == np.arange(1, 16).reshape(3, 5)).all()


def test_the_device_and_its_views_see_the_same_bytes(device: Device) -> None:
    first, second = (lb.empty((4096,), dtype="int32", device=device, host_access="rw") for _ in range(2))
    for value in range(10):
        with first.host_view("w") as a:
            a[:] = value
        api_of(device).copy_data_from_to(
            first.storage.live_region, second.storage.live_region, first.nbytes, None, None
        )
        with second.host_view("r") as a:
            assert (a == value).all()


def test_a_hidden_scope_has_no_view_and_says_so(device: Device) -> None:
    kind = device.memory_kind()
    if kind.host_access != "none":
        assert lb.empty((4,), dtype="int8", device=device).host_view("r") is not None
        return
    t = lb.empty((4,), dtype="int8", device=device)
    with pytest.raises(HostViewError, match="global"):
        t.host_view("r")
    with pytest.raises(HostViewError, match="host_access='rw'"):
        api_of(device).host_pointer(t.storage.live_region.space)


def test_large_copies_are_staged_in_parts(device: Device) -> None:
    values = np.random.default_rng(1).integers(0, 255, (9 << 20) + 13, np.uint8)
    assert (back(lb.asarray(values, device=device, copy=True)) == values).all()


class TestImport:
    def test_a_mapped_array_is_used_in_place(self, plain: Device) -> None:
        array = pages(4).view(np.float32)
        with lb.no_copies():
            there = lb.asarray(array, device=plain, copy=False)
            array[:] = 7
            with there.host_view("rw") as view:
                view += 1
        assert array[5] == 8
        assert (back(there) == 8).all()

    def test_a_part_is_imported_by_the_pages_of_its_owner(self, plain: Device) -> None:
        whole = pages(4).view(np.float32)
        part = whole[100:2100].reshape(20, 100)
        with lb.no_copies():
            there = lb.asarray(part, device=plain, copy=False)
        part[:] = 3
        assert there.shape == (20, 100)
        assert (back(there) == 3).all()

    @pytest.mark.parametrize("skipped", [0, 4, 16, 4092])
    def test_ordinary_arrays_are_imported_by_the_pages_around_them(self, plain: Device, skipped: int) -> None:
        """Two arrays that share a page; what lies between and around them stays as it was."""
        around = np.arange(5 * 1024, dtype=np.float32)
        first, second = (around.ctypes.data // 4 + 1023) // 1024 * 1024 - around.ctypes.data // 4, 1500
        ends = [
            slice(first + skipped // 4, first + skipped // 4 + second),
            slice(first + skipped // 4 + second + 3, -7),
        ]
        arrays = [
            np.ctypeslib.as_array(
                (ctypes.c_float * (s.indices(around.size)[1] - s.start)).from_buffer(around, 4 * s.start)
            )
            for s in ends
        ]
        there = [lb.asarray(array, device=plain, copy=False) for array in arrays]
        for tensor, array in zip(there, arrays, strict=True):
            np.testing.assert_array_equal(back(tensor), array)
            tensor.copy_from(lb.asarray(-array, device=plain))
        wanted = np.arange(5 * 1024, dtype=np.float32)
        for end in ends:
            wanted[end] *= -1
        del there
        np.testing.assert_array_equal(around, wanted)

    def test_kernels_take_no_memory_below_the_offset_alignment(
        self, plain: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kinds = {scope: _replaced(kind, offset_alignment=64) for scope, kind in plain.memory_kinds.items()}
        monkeypatch.setattr(plain, "_kinds", kinds)
        around = np.zeros(4096 + 1024, np.uint8)
        first = -around.ctypes.data % 4096
        assert lb.asarray(around[first + 64 : first + 128], device=plain, copy=False).nbytes == 64
        with pytest.raises(ZeroCopyError, match="begin at byte 16, and its kernels take memory from multiples of 64"):
            lb.asarray(around[first + 16 : first + 128], device=plain, copy=False)

    def test_memory_of_ours_is_imported_whatever_its_size(self, plain: Device) -> None:
        for shape in ((3,), (1000,), (1, 3, 48, 192), (100_001,)):
            mine = lb.empty(shape, dtype="float32", device="cpu")
            with lb.no_copies():
                there = lb.asarray(mine, device=plain, copy=False)
            np.asarray(mine)[:] = 5
            assert (back(there) == 5).all()

    def test_an_array_that_is_not_aligned_says_precisely_why(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where barriers are needed, which would reach the bytes around it."""
        plain = use_api(make_api(coherent=False), monkeypatch)
        array = np.frombuffer(ctypes.create_string_buffer(10000), np.uint8)[24:5024]
        with pytest.raises(ZeroCopyError) as raised:
            lb.asarray(array, device=plain, copy=False)
        for output in (
            f"{array.ctypes.data:#x}",
            "multiples of 4096",
            f"{array.ctypes.data % 4096} bytes past",
            "host_access",
        ):
            assert output in str(raised.value), raised.value

    def test_the_owner_lives_until_the_device_is_done(self, plain: Device) -> None:
        api = api_of(plain)
        mapping = mmap.mmap(-1, 1 << 20)
        seen = weakref.ref(mapping)
        there = lb.asarray(np.frombuffer(mapping, np.uint8), device=plain, copy=False)
        mapping[:4] = b"abcd"
        del mapping
        target = lb.empty((1 << 20,), dtype="uint8", device=plain)
        target = there.copy()
        gc.collect()
        assert seen() is not None, "the owner went while a Tensor used its memory"
        assert bytes(back(target)[:4]) == b"abcd"
        del there, target
        gc.collect()
        assert seen() is None, "the owner is held for no reason"
        api.stream_sync(0, None)

    def test_an_import_is_not_freed_under_its_users(self, plain: Device) -> None:
        mine = lb.empty((1024,), dtype="float32", device="cpu")
        there = lb.asarray(mine, device=plain, copy=False)
        with pytest.raises(StorageInUseError):
            mine.storage.free()
        del there
        mine.storage.free()

    @pytest.mark.parametrize(
        ("address", "nbytes"), [(0, 4096), (4096, 0), (4096, -4096), (4096 + 8, 4096), (4096, 100), (-4096, 4096)]
    )
    def test_bad_ranges_never_reach_the_driver(self, plain: Device, address: int, nbytes: int) -> None:
        with pytest.raises(ZeroCopyError, match="must be multiples of 4096"):
            api_of(plain).import_memory(0, HostPointer(address, nbytes), "rw")

    def test_without_the_extension(self, plain: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        api = api_of(plain)
        without = _replaced(api.logical(0).physical, import_alignment=None)
        monkeypatch.setattr(api.logical(0), "physical", without)
        with pytest.raises(ZeroCopyError, match="VK_EXT_external_memory_host"):
            api.import_memory(0, HostPointer(4096, 4096), "rw")

    def test_a_driver_that_refuses(self, plain: Device) -> None:
        api, array = api_of(plain), pages(1)
        calls = api.logical(0).calls
        before = calls.replace("vkAllocateMemory", lambda *arguments: -1000072003)
        try:
            with pytest.raises(ZeroCopyError, match="VK_ERROR_INVALID_EXTERNAL_HANDLE"):
                lb.asarray(array, device=plain, copy=False)
        finally:
            calls.replace("vkAllocateMemory", before)
        assert lb.asarray(array, device=plain, copy=False).device == plain

    def test_what_vulkan_does_not_import(self, plain: Device) -> None:
        api = api_of(plain)
        with pytest.raises(ZeroCopyError, match="no bus addresses"):
            api.import_memory(0, BusAddress(4096, None, 4096), "rw")
        if "VK_EXT_external_memory_dma_buf" not in api.logical(0).extensions:
            with pytest.raises(ZeroCopyError, match="no VK_EXT_external_memory_dma_buf; map the dma-buf"):
                api.import_memory(0, DmaBuf(0, 0, 4096), "rw")


class TestExport:
    """lavapipe has no dma-bufs, but file descriptors of its own (opaque): the same calls, with another handle type."""

    @pytest.fixture
    def opaque(self, plain: Device, monkeypatch: pytest.MonkeyPatch) -> VulkanDeviceAPI:
        device = api_of(plain).logical(0)
        if "VK_KHR_external_memory_fd" not in device.extensions:
            pytest.skip("the driver exports no memory")
        monkeypatch.setattr(device, "extensions", (*device.extensions, "VK_EXT_external_memory_dma_buf"))
        monkeypatch.setattr(flags, "HANDLE_DMA_BUF", 1)  # VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT

        def every_type(handle: int, handle_type: int, fd: int, properties: Any) -> int:
            properties._obj.memoryTypeBits = 1  # what an opaque descriptor may not be asked for
            return 0

        device.calls.replace("vkGetMemoryFdPropertiesKHR", every_type)
        size = os.lseek  # an opaque file has a head of the driver's own before the memory
        monkeypatch.setattr(os, "lseek", lambda fd, at, how: min(size(fd, at, how), 8192))
        return api_of(plain)

    def test_memory_goes_to_another_device_and_back(self, opaque: VulkanDeviceAPI) -> None:
        api = opaque
        space = api.alloc_shared_space(0, 8192, 1, "global")
        ctypes.memset(api.host_pointer(space), 7, 8192)
        fd = api.export_fd(space)
        assert os.fstat(fd)
        imported = api.import_memory(0, DmaBuf(fd, 4096, 4096), "rw")
        os.close(fd)  # the import does not need it
        target = api.alloc_data_space(0, 4096, 1, "global", None)
        ctypes.memset(api.host_pointer(space) + 4096, 9, 4096)
        api.copy_data_from_to(Region(imported), Region(target), 4096, None, None).synchronize()
        assert ctypes.string_at(api.host_pointer(target), 4096) == b"\x09" * 4096
        api.release_import(imported)
        for each in (space, target):
            api.free_data_space(each)

    def test_what_is_not_exported(self, opaque: VulkanDeviceAPI) -> None:
        space = opaque.alloc_data_space(0, 4096, 1, "global", None)
        with pytest.raises(ZeroCopyError, match="was not made to be shared"):
            opaque.export_fd(space)
        opaque.free_data_space(space)
        with pytest.raises(ZeroCopyError, match=r"give a range inside it|Bad file descriptor"):
            opaque.import_memory(0, DmaBuf(10_000, 0, 4096), "rw")

    def test_without_the_extension(self, plain: Device) -> None:
        api = api_of(plain)
        if "VK_EXT_external_memory_dma_buf" in api.logical(0).extensions:
            pytest.skip("the driver has dma-bufs")
        space = lb.empty((16,), dtype="int8", device=plain, host_access="rw").storage.live_region.space
        with pytest.raises(ZeroCopyError, match="exports no memory: its driver has no VK_EXT_external_memory_dma_buf"):
            api.export_fd(space)


class Counted:
    """A driver call that is looked on, and done: the arguments of each time."""

    def __init__(self, api: VulkanDeviceAPI, name: str) -> None:
        self.ranges: list[tuple[int, int]] = []
        self._real = api.logical(0).calls.replace(name, self)

    def __call__(self, device: int, count: int, request: Any) -> int:
        found = request._obj
        self.ranges.append((found.offset, found.size))
        return int(self._real(device, count, request))


class TestBarriers:
    """lavapipe's memory is coherent: that the calls are made, on the right ranges, is seen here. That they are enough
    on memory that needs them is seen in test_shadow_layer.py."""

    @pytest.mark.parametrize("start", [0, 60, 64, 100])
    def test_flush_and_invalidate_whole_atoms(self, start: int) -> None:
        api = make_api(coherent=False)
        flush, invalidate = Counted(api, "vkFlushMappedMemoryRanges"), Counted(api, "vkInvalidateMappedMemoryRanges")
        space = api.alloc_data_space(0, 1000, 1, "global", None)
        base, atom = space.handle.offset, api.logical(0).physical.limits.nonCoherentAtomSize
        api.begin_host_access(Region(space, start), 10, "r")
        assert flush.ranges == []
        ((offset, size),) = invalidate.ranges
        assert offset <= base + start and base + start + 10 <= offset + size
        assert offset % atom == size % atom == 0 and size <= 2 * atom
        api.end_host_access(Region(space, start), 10, "r")
        assert flush.ranges == []
        api.begin_host_access(Region(space, start), 10, "w")
        assert len(invalidate.ranges) == 1, "what is overwritten was read first"
        api.end_host_access(Region(space, start), 10, "w")
        assert flush.ranges == invalidate.ranges
        api.free_data_space(space)
        api.close(0)

    def test_coherent_memory_needs_none(self, plain: Device) -> None:
        if not plain.memory_kind().coherent:
            pytest.skip("the driver's memory is not coherent")
        api = api_of(plain)
        flush, invalidate = Counted(api, "vkFlushMappedMemoryRanges"), Counted(api, "vkInvalidateMappedMemoryRanges")
        with lb.empty((8,), dtype="int8", device=plain).host_view("rw") as a:
            a[:] = 1
        assert (flush.ranges, invalidate.ranges) == ([], [])

    def test_copies_from_and_to_the_host_have_them_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from tests.devices.vulkan.conftest import make_api, use_api

        api = make_api(coherent=False, unified=False)
        device = use_api(api, monkeypatch)
        flush, invalidate = Counted(api, "vkFlushMappedMemoryRanges"), Counted(api, "vkInvalidateMappedMemoryRanges")
        sent = lb.asarray(np.arange(100, dtype=np.int32), device=device, copy=True)
        assert len(flush.ranges) == 1 and not invalidate.ranges
        assert (back(sent) == np.arange(100)).all()
        assert len(invalidate.ranges) == 1
        api.close(0)


class TestRefusals:
    def test_an_allocation_over_max_bytes(self, plain: Device) -> None:
        most = plain.memory_kind().max_bytes
        assert most is not None
        with pytest.raises(OutOfMemoryError, match=f"at most {most} bytes"):
            api_of(plain).alloc_data_space(0, most, 1, "global", None)
        with pytest.raises(InputError, match="at most"):
            lb.empty((most + 1,), dtype="int8", device=plain)

    @pytest.mark.parametrize(("nbytes", "alignment"), [(-1, 1), (8, 0), (8, 3), (8, -4)])
    def test_sizes_and_alignments(self, plain: Device, nbytes: int, alignment: int) -> None:
        with pytest.raises(InputError, match="legal: at least 0 bytes, a power of two"):
            api_of(plain).alloc_data_space(0, nbytes, alignment, "global", None)

    def test_a_driver_without_memory(self, plain: Device) -> None:
        api = api_of(plain)
        calls = api.logical(0).calls
        before = calls.replace("vkAllocateMemory", lambda *arguments: -2)
        try:
            with pytest.raises(OutOfMemoryError, match="VK_ERROR_OUT_OF_DEVICE_MEMORY"):
                api.alloc_data_space(0, 4096, 1, "global", None)
        finally:
            calls.replace("vkAllocateMemory", before)
        owned = len(api.logical(0)._owned)
        api.free_data_space(api.alloc_data_space(0, 4096, 1, "global", None))
        assert len(api.logical(0)._owned) == owned, "something half made stayed behind"

    def test_freed_spaces(self, plain: Device) -> None:
        api = api_of(plain)
        space, other = (api.alloc_data_space(0, 64, 1, "global", None) for _ in range(2))
        api.free_data_space(space)
        uses: list[Callable[[], object]] = [
            lambda: api.host_pointer(space),
            lambda: api.copy_data_from_to(Region(space), Region(other), 8, None, None),
            lambda: api.begin_host_access(Region(space), 8, "r"),
            lambda: api.free_data_space(space),
        ]
        for use in uses:
            with pytest.raises(UseAfterFreeError):
                use()
        api.free_data_space(other)

    @pytest.mark.parametrize(
        ("src", "dst", "nbytes"), [(0, 0, -1), (-8, 0, 8), (0, 60, 8), (1 << 40, 0, 8), (0, 0, 65)]
    )
    def test_copies_outside_their_spaces(self, plain: Device, src: int, dst: int, nbytes: int) -> None:
        api = api_of(plain)
        space, other = (api.alloc_data_space(0, 64, 1, "global", None) for _ in range(2))
        with pytest.raises(InputError, match="do not lie in a space of 64 bytes"):
            api.copy_data_from_to(Region(space, src), Region(other, dst), nbytes, None, None)
        assert api.copy_data_from_to(Region(space), Region(other), 0, None, None) is None
        for each in (space, other):
            api.free_data_space(each)


def test_memory_in_use_is_destroyed_when_the_work_is_done(plain: Device) -> None:
    api = api_of(plain)
    spaces = [api.alloc_data_space(0, 1 << 20, 1, "global", None) for _ in range(8)]
    for source, target in pairwise(spaces):
        api.copy_data_from_to(Region(source), Region(target), 1 << 20, None, None)
    for space in spaces:
        api.free_data_space(space)
    api.stream_sync(0, None)
    api.logical(0).collect()
    assert not [kind for kind, _ in api.logical(0)._owned if kind in ("Buffer", "Memory")]


def test_the_target_of_the_device_has_its_memory_and_limits(device: Device) -> None:
    target = Target.from_device(device)
    assert target.kind == "vulkan"
    assert {kind.scope: kind for kind in target.memory} == dict(device.memory_kinds)
    limits = api_of(device).logical(0).physical.limits
    assert target.options["max-workgroup-size"] == limits.maxComputeWorkGroupInvocations
    assert target.options["local-memory-bytes"] == limits.maxComputeSharedMemorySize
    unified = device.memory_kind().host_access != "none"
    assert target.shares == ((("cpu", "global"),) if unified else ())
    assert Target.from_json(target.to_json()) == target


def _replaced(physical: Any, **changes: object) -> Any:
    from dataclasses import replace

    return replace(physical, **changes)


def test_two_handles_of_one_space_are_one(plain: Device) -> None:
    api = api_of(plain)
    space = api.alloc_data_space(0, 64, 1, "global", None)
    assert Space(plain, "global", space.handle) == space
    api.free_data_space(space)


def test_host_memory_goes_to_numpy_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """numpy asks for no device, and a buffer of Vulkan has no address that a capsule of its own could name."""
    device = use_api(make_api(), monkeypatch)
    tensor = lb.empty((3, 4), dtype="float32", device=device)
    array = np.from_dlpack(tensor)
    np.asarray(tensor)[...] = 7
    assert (array == 7).all()
    assert tensor.__dlpack_device__() == (7, 0)
    with pytest.raises(ZeroCopyError, match="no address"):
        tensor.__dlpack__(dl_device=(7, 0))
