"""Extents: where a device finds bytes, and memory that it cannot use there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Region, Space
from landbridge.device.import_source import BusAddress, ImportSource
from landbridge.device.protocols import AccessMode
from landbridge.errors import BindError, DeviceError, UseAfterFreeError, ZeroCopyError
from landbridge.memory.extents import Extent, extents
from landbridge.memory_kind import MemoryKind
from landbridge.tensor import Tensor
from tests.device.board_array import Dram, PynqArray
from tests.device.caching_device import CachingDeviceAPI
from tests.memory.import_count import imported_ranges
from tests.vm.lazy_kernels import LazyKernels, N
from tests.vm.test_overlap import two_branches

PAGE = 4096


class Mapped(CachingDeviceAPI):
    """Its addresses are not the host's: page ``p`` of this process is page ``place(p - first)`` of the device."""

    def __init__(self, place: Callable[[int], int], **facts: Any) -> None:
        super().__init__()
        self._top = -(-self._top // PAGE) * PAGE
        self.first, self.place, self.facts = self._top // PAGE, place, facts

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        return {scope: replace(kind, **self.facts) for scope, kind in super().memory_kinds(index).items()}

    def device_address(self, region: Region) -> int:
        address = region.space.handle + region.byte_offset
        return self.place(address // PAGE - self.first) * PAGE + address % PAGE


def bytes_of(found: tuple[Extent, ...]) -> list[int]:
    return [byte for address, nbytes in found for byte in range(address, address + nbytes)]


@pytest.mark.parametrize(
    ("pages", "segments"), [([7, 8, 9, 10], 1), ([7, 8, 3, 4], 2), ([7, 3, 8, 4], 4), ([4, 3, 2, 1], 4)]
)
@pytest.mark.parametrize(("start", "stop"), [(0, 4 * PAGE), (100, 3 * PAGE + 7), (PAGE, 2 * PAGE), (5, 5)])
def test_each_byte_is_where_the_device_says(pages: list[int], segments: int, start: int, stop: int) -> None:
    api = Mapped(pages.__getitem__)
    storage = lb.empty((4 * PAGE,), dtype="uint8", device=Device(api, 0)).storage
    found = extents(storage, Device(api, 0), start, stop)
    region = storage.live_region
    assert bytes_of(found) == [api.device_address(Region(region.space, byte)) for byte in range(start, stop)]
    if (start, stop) == (0, 4 * PAGE):
        assert len(found) == segments


@pytest.mark.parametrize("boundary", [64, 4096, 1 << 14])
def test_no_extent_crosses_the_boundary(boundary: int) -> None:
    api = Mapped(lambda page: page + 3, segment_boundary=boundary)
    storage = lb.empty((4 * PAGE,), dtype="uint8", device=Device(api, 0)).storage
    found = extents(storage, Device(api, 0), 10)
    assert bytes_of(found) == list(range(3 * PAGE + 10, 7 * PAGE))
    assert all(address // boundary == (address + nbytes - 1) // boundary for address, nbytes in found)
    assert len(found) == 7 * PAGE // boundary - (3 * PAGE + 10) // boundary + (7 * PAGE % boundary != 0)


def test_memory_comes_with_its_address() -> None:
    dram, elsewhere = Dram(), Device(CachingDeviceAPI(), 0)
    array = dram.allocate((64,), np.uint8, kind=PynqArray)
    assert extents(lb.asarray(array[8:]).storage, elsewhere) == (Extent(dram.begin + 8, 56),)
    coherent = dram.allocate((64,), np.uint8, coherent=True, kind=PynqArray)
    assert extents(lb.asarray(coherent).storage, elsewhere, 4) == (Extent(dram.begin + 64 + 4, 60),)
    assert extents(lb.asarray(np.zeros(4)).storage, elsewhere) == (), "nobody knows"


def test_a_tensor_says_where_its_elements_are() -> None:
    api = Mapped(lambda page: 2 * page)
    tensor = lb.empty((2, PAGE), dtype="uint8", device=Device(api, 0))
    assert tensor.extents() == (Extent(0, PAGE), Extent(2 * PAGE, PAGE))
    row = Tensor(tensor.storage, "uint8", (PAGE,), None, PAGE)
    assert row.extents(Device(api, 0)) == (Extent(2 * PAGE, PAGE),)
    assert lb.asarray(np.zeros(4)).extents() == ()
    tensor.storage.free()
    with pytest.raises(UseAfterFreeError):
        tensor.extents()


def page_array(pages: int = 4) -> np.ndarray[Any, Any]:
    return np.asarray(lb.empty((pages * PAGE,), dtype="uint8", alignment=PAGE))


@pytest.mark.parametrize(
    ("place", "facts", "problem"),
    [
        (lambda page: -page % 997, {"max_segments": 3}, r"4096 at 0x.*lies in 3 segments at most \(max_segments\)"),
        (lambda page: page % 64 + 3, {"max_segments": 1, "segment_boundary": 1 << 13}, "none across a multiple of 0x2"),
        (lambda page: page % 64 + (1 << 20), {"dma_address_bits": 32}, r"addresses of 32 bits \(dma_address_bits\)"),
    ],
)
@pytest.mark.parametrize("allocated", [{}, {"physically_contiguous": True}], ids=["anywhere", "contiguous"])
def test_an_import_that_the_device_cannot_use_is_refused(
    place: Callable[[int], int], facts: dict[str, Any], problem: str, allocated: dict[str, Any]
) -> None:
    facts = facts | allocated  # what is said of allocations says nothing of what is imported
    api, array = Mapped(place, **facts), page_array()
    with pytest.raises(ZeroCopyError, match=rf"(?s)in place: .*{problem}.*; give memory that the device allocated"):
        lb.asarray(array, device=Device(api, 0), copy=False)
    assert imported_ranges(Device(api, 0)) == 0, "nothing is left imported"
    loose = Mapped(place, **{**facts, "max_segments": None, "dma_address_bits": 48})
    assert lb.asarray(array, device=Device(loose, 0), copy=False).nbytes == 4 * PAGE


class OnTheBus(CachingDeviceAPI):
    """A 32-bit master that takes bus addresses, at multiples of 64, and states none itself."""

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        kinds = super().memory_kinds(index)
        return {scope: replace(kind, offset_alignment=64, dma_address_bits=32) for scope, kind in kinds.items()}

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        assert isinstance(source, BusAddress)
        return Space(Device(self, index), "global", source.address)


def test_alignment_is_that_of_the_devices_address() -> None:
    device, memory = Device(OnTheBus(), 0), np.zeros(4096, np.uint8)
    aligned = -memory.ctypes.data % 64

    def at(address: int, host: int) -> Tensor:
        host_address = memory.ctypes.data + aligned + host
        return lb.from_bus_address(address, (64,), "uint8", device=device, host_address=host_address, owner=memory)

    assert at(0x1000_0040, 4).nbytes == 64
    with pytest.raises(ZeroCopyError, match=r"64 at 0x10000004, .* begins at multiples of 64"):
        at(0x1000_0004, 0)
    with pytest.raises(ZeroCopyError, match=r"64 at 0xffffffe0, .* has addresses of 32 bits"):
        at((1 << 32) - 32, 0)
    assert at((1 << 32) - 64, 0).nbytes == 64


class LazyAddresses(LazyKernels):
    """Spaces begin at ``begin``; ``facts`` are of its memory."""

    def __init__(self, begin: int, **facts: Any) -> None:
        super().__init__(0)
        self.begin = begin
        self._kinds["global"] = replace(self._kinds["global"], physically_contiguous=True, **facts)

    def device_address(self, region: Region) -> int:
        return self.begin + region.byte_offset


@pytest.mark.parametrize(
    ("begin", "facts", "problem"),
    [
        (1 << 32, {"dma_address_bits": 32}, "addresses of 32 bits"),
        (0, {"max_segments": 1, "segment_boundary": 32}, "1 segments at most, none across a multiple of 0x20"),
    ],
)
def test_planned_tensors_are_checked_when_a_program_is_bound(begin: int, facts: dict[str, Any], problem: str) -> None:
    devices = {"cpu": "cpu", "dev": Device(LazyAddresses(begin, **facts), 0)}
    with pytest.raises(BindError, match=rf"tensor 'x there' of {4 * N} bytes.*{problem}"):
        lb.Session(two_branches(), devices=devices, num_threads=1)


def test_a_storage_at_an_address_that_is_not_aligned_is_found_before() -> None:
    devices = {"cpu": "cpu", "dev": Device(LazyAddresses(32), 0)}
    with pytest.raises(DeviceError, match="device's address 0x20 is not a multiple of 256"):
        lb.Session(two_branches(), devices=devices, num_threads=1)


def test_tensors_of_one_storage_are_checked_one_by_one() -> None:
    """The storage crosses the boundary, between the two."""
    api = LazyAddresses(0, max_segments=1, segment_boundary=64, dma_address_bits=32)
    s = lb.Session(two_branches(), devices={"cpu": "cpu", "dev": Device(api, 0)}, num_threads=1)
    y, _ = s(np.ones(N, np.float32))
    assert (np.asarray(y) == 4).all()
