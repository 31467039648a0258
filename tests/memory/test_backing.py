"""Backings: what two ways to the same bytes know of each other."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Region
from landbridge.device.memory_provider import Caching
from landbridge.device.state import DeviceState
from landbridge.errors import HostAccessError, ZeroCopyError
from landbridge.memory.accesses import Access
from landbridge.memory.allocators.base import QueuedUse
from landbridge.memory.allocators.default import named_allocator
from landbridge.memory.backing import Backing
from landbridge.memory.coherence import before_device_access
from landbridge.memory.memory_barriers import have_barriers
from landbridge.memory.windows import AddressWindows, WindowKeeper, host_windows
from landbridge.tensor import Tensor
from landbridge.tensor.copy import _copy_by
from tests.device.caching_device import LINE, CachingDeviceAPI, device
from tests.memory.test_accesses import Work

N = 4 * LINE


def by_device(api: CachingDeviceAPI, dst: Tensor, src: Tensor) -> None:
    """Work of the device that copies ``src`` to ``dst``, and after which nobody gives the memory back to its owner."""
    before_device_access(src.storage, *src.byte_range, writes=False)
    before_device_access(dst.storage, *dst.byte_range, writes=True)
    ends = (Region(t.storage.live_region.space, t.storage.live_region.byte_offset + t.byte_offset) for t in (src, dst))
    api.copy_data_from_to(*ends, src.nbytes, None, None)


def lines(count: int = 4) -> np.ndarray[Any, Any]:
    """Zeros that begin and end with a line."""
    raw = np.zeros((count + 1) * LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + count * LINE]


def queue(tensor: Tensor, *, writes: bool = True) -> Work:
    work = Work(over=False)
    tensor.storage.queue(Access(*tensor.byte_range, writes, "a test"), QueuedUse(work))
    return work


def two_views_of_an_array() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    array = lines()
    yield lb.asarray(array[:N]), lb.asarray(array[LINE:]), lb.asarray(array[:LINE])


def two_mappings_of_a_file() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    fd = os.memfd_create("shared")
    os.ftruncate(fd, N)
    again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
    yield (
        lb.from_dma_buf(fd, (N,), "uint8", device="cpu"),
        lb.from_dma_buf(again, (N - LINE,), "uint8", device="cpu", offset=LINE),
        lb.from_dma_buf(again, (LINE,), "uint8", device="cpu"),
    )
    os.close(fd)
    os.close(again)


def own_memory_and_an_array_over_it() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    owned = lb.empty((N,), dtype="uint8")
    array = np.asarray(owned)
    yield owned, lb.asarray(array[LINE:]), lb.asarray(array[:LINE])


def own_memory_and_its_file() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    owned = lb.empty((N,), dtype="uint8", host_access="rw")
    fd, offset = lb.export_fd(owned)
    yield (
        owned,
        lb.from_dma_buf(fd, (N - LINE,), "uint8", device="cpu", offset=offset + LINE),
        lb.from_dma_buf(fd, (LINE,), "uint8", device="cpu", offset=offset),
    )
    os.close(fd)


@pytest.fixture(
    params=[
        two_views_of_an_array,
        two_mappings_of_a_file,
        own_memory_and_an_array_over_it,
        own_memory_and_its_file,
    ]
)
def variants(request: pytest.FixtureRequest) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The same memory three times: all of it, all but its first line, and that one."""
    yield from request.param()


def test_queued_work_is_waited_for_by_whichever_way(variants: tuple[Tensor, Tensor, Tensor]) -> None:
    whole, rest, first = variants
    work = queue(rest)
    with first.host_view("rw"):
        assert not work.waited, "other bytes"
    with Tensor(whole.storage, "uint8", (LINE + 1,)).host_view("r"):
        assert work.waited


def test_views_conflict_by_whichever_way(variants: tuple[Tensor, Tensor, Tensor]) -> None:
    whole, rest, first = variants
    with rest.host_view("rw"):
        with first.host_view("rw"):
            pass
        with pytest.raises(HostAccessError), Tensor(whole.storage, "uint8", (LINE + 1,)).host_view("r"):
            pass


def test_two_that_are_apart_become_one_with_a_third_over_both() -> None:
    array = lines(3)
    left, right = lb.asarray(array[:LINE]), lb.asarray(array[2 * LINE :])
    works = queue(left), queue(right)
    with lb.asarray(array[LINE : 2 * LINE]).host_view("rw"):
        assert not works[0].waited and not works[1].waited
    with lb.asarray(array).host_view("r"):
        assert works[0].waited and works[1].waited
    assert left.storage.part()[0] is right.storage.part()[0]
    late = queue(left)
    with right.host_view("rw"):
        assert not late.waited


def test_what_died_is_known_by_nobody() -> None:
    array = lines()
    queue(lb.asarray(array)).over = True
    gc.collect()
    assert host_windows.find(array.ctypes.data, array.ctypes.data + 1) is None


def test_windows_are_found_by_each_of_their_bytes() -> None:
    windows, low, high = AddressWindows(), Backing(), Backing()
    windows.enter(100, 110, low, 0, low)
    windows.enter(120, 130, high, 5, high)
    for start, stop, found in ((90, 100, None), (90, 101, (low, -10)), (109, 119, (low, 9)), (110, 120, None)):
        assert windows.find(start, stop) == found
    assert windows.find(125, 126) == (high, 10)
    over = Backing()
    assert windows.enter(105, 125, over, 0, over)[0].merged is None
    (one, first), (same, last) = windows.find(100, 101), windows.find(129, 130)  # type: ignore[misc]
    assert one is same and last - first == 29


def test_addresses_are_known_as_long_as_who_knows_them() -> None:
    """Those of one that went may be of other memory by now, whoever else looks at a part of what it was."""
    windows, part, whole, keeper = AddressWindows(), Backing(), Backing(), WindowKeeper()
    windows.enter(1000, 1100, part, 0, part)
    windows.enter(0, 1 << 50, whole, 0, keeper)
    (one, first), (same, last) = windows.find(5, 6), windows.find(1010, 1011)  # type: ignore[misc]
    assert one is same and last - first == 1005
    del keeper
    assert windows.find(5, 1000) is None and windows.find(1100, 1 << 50) is None
    assert windows.find(1010, 1011) == (one, last)


class Noting:
    """A provider that notes the barriers it is asked for."""

    granule, caching = 4, Caching.CACHED

    def __init__(self) -> None:
        self.calls: list[tuple[int, int, str]] = []

    def sync(self, offset: int, nbytes: int, mode: str, side: str) -> None:
        self.calls.append((offset, nbytes, side))

    def host_address(self) -> None:
        return None

    def device_address(self, device: Device) -> None:
        return None


def test_barriers_are_of_their_own_memory() -> None:
    """What is one Backing with it, by memory over both, needs none of them."""
    memory, provider = lines(), Noting()
    whole = lb.asarray(memory)
    backing, origin = whole.storage.part()
    have_barriers(backing, origin + LINE, LINE, provider)
    for first, wanted in ((0, 0), (1, 2), (2, 0)):
        provider.calls.clear()
        with lb.asarray(memory[first * LINE : (first + 1) * LINE]).host_view("rw"):
            pass
        assert len(provider.calls) == wanted, first


class TestOfADevice:
    """Overlapping imports of one array, by devices that see it past the host's caches."""

    def test_one_sees_what_the_other_wrote(self) -> None:
        api, array = CachingDeviceAPI(), lines()
        one = lb.asarray(array, device=device(api), copy=False)
        other = lb.asarray(array[LINE:], device=device(api), copy=False)
        target = lb.empty((8,), dtype="uint8", device=device(api))
        with Tensor(one.storage, "uint8", (8,), byte_offset=LINE).host_view("w") as a:
            a[:] = 5
            _copy_by(device(api), target, Tensor(other.storage, "uint8", (8,), byte_offset=8), "test", None)
            assert api.read(array.ctypes.data + LINE, 8) == b"\5" * 8, "the line was flushed for the other"

    def test_both_sides_dirty_is_an_error_by_whichever_import(self) -> None:
        api, array = CachingDeviceAPI(), lines()
        one = lb.asarray(array, device=device(api), copy=False)
        other = lb.asarray(array[:LINE], device=device(api), copy=False)
        source = lb.asarray(np.full(8, 7, np.uint8), device=device(api))
        view = Tensor(one.storage, "uint8", (8,)).host_view("rw")
        view.__enter__()[:] = 1
        by_device(api, Tensor(other.storage, "uint8", (8,), byte_offset=8), source)
        with pytest.raises(HostAccessError, match="host and device both wrote"):
            view.__exit__(None, None, None)

    def test_a_tensor_of_the_host_sees_what_the_device_wrote(self) -> None:
        api, array = CachingDeviceAPI(), lines()
        mine = lb.asarray(array)
        there = lb.asarray(mine, device=device(api), copy=False)
        source = lb.asarray(np.full(N, 7, np.uint8), device=device(api))
        by_device(api, there, source)
        assert array[0] == 0, "it is in the host's cache"
        with mine.host_view("r") as a:
            assert a.tolist() == [7] * N

    def test_what_the_device_wrote_outlives_the_import(self) -> None:
        api, array = CachingDeviceAPI(), lines()
        there = lb.asarray(array, device=device(api), copy=False)
        source = lb.asarray(np.full(N, 7, np.uint8), device=device(api))
        by_device(api, there, source)
        del there
        gc.collect()
        assert array.tolist() == [7] * N

    def test_two_devices_see_each_others_writes(self) -> None:
        one, other, array = CachingDeviceAPI(), CachingDeviceAPI(), lines()
        here = lb.asarray(array, device=device(one), copy=False)
        there = lb.asarray(array, device=device(other), copy=False)
        source = lb.asarray(np.full(N, 7, np.uint8), device=device(one))
        by_device(one, here, source)
        target = lb.empty((N,), dtype="uint8", device=device(other))
        _copy_by(device(other), target, there, "test", None)
        with target.host_view("r") as a:
            assert a.tolist() == [7] * N

    @pytest.mark.parametrize(("start", "stop"), [(1, LINE), (0, LINE - 1), (8, N - 8)])
    def test_a_partial_granule_is_not_imported_for_writing(self, start: int, stop: int) -> None:
        api, array = CachingDeviceAPI(), lines()
        with pytest.raises(ZeroCopyError, match=r"whole granules of 64 bytes.*bytes of others"):
            lb.asarray(array[start:stop], device=device(api), copy=False)
        array.flags.writeable = False
        assert lb.asarray(array[start:stop], device=device(api), copy=False).nbytes == stop - start

    def test_new_memory_is_flushed_before_the_device_writes_it(self) -> None:
        """What is left of its zeros in the host's cache could be written back over what the device writes."""
        api = CachingDeviceAPI()
        source = lb.asarray(np.full(N, 7, np.uint8), device=device(api))
        target = lb.empty((N,), dtype="uint8", device=device(api))
        api.barriers.clear()
        _copy_by(device(api), target, source, "test", None)
        address = target.storage.address
        assert ("end", address, N, "w") in api.barriers
        with target.host_view("r") as a:
            assert a.tolist() == [7] * N

    @pytest.mark.parametrize("allocator", ["pooled", "naive"])
    def test_no_two_allocations_share_a_granule(self, allocator: str) -> None:
        api = CachingDeviceAPI()
        source = named_allocator(device(api), "global", allocator)
        sizes = (1, LINE + 1, 2)
        made = [lb.empty((n,), dtype="uint8", device=device(api), allocator=source) for n in sizes]
        assert all(t.storage.address % LINE == 0 for t in made)
        used = [range(t.storage.address // LINE, -(-(t.storage.address + t.nbytes) // LINE)) for t in made]
        assert sum(map(len, used)) == len({line for lines in used for line in lines}) == 4


def test_memory_that_went_with_its_device_is_not_found_at_its_addresses() -> None:
    """They may be of other memory, although somebody still holds a Tensor of the lost one."""
    windows, holders = AddressWindows(), (WindowKeeper(), WindowKeeper())
    life, lost, new = DeviceState("sim:0"), Backing(), Backing()
    lost.lives = (life,)
    windows.enter(4096, 8192, lost, 0, holders[0])
    assert windows.find(4096, 4100) == (lost, 0)
    life.suspend()  # memory is as it was
    assert windows.find(4096, 4100) == (lost, 0)
    life.resume()
    life.lose("a test")
    assert windows.find(4096, 4100) is None
    assert windows.enter(4096, 8192, new, 0, holders[1]) == (new, 0)
    assert windows.find(5000, 5001) == (new, 904)


def test_a_merged_backing_is_gone_with_each_of_its_devices() -> None:
    windows, holders = AddressWindows(), (WindowKeeper(), WindowKeeper())
    life, own, borrowed = DeviceState("sim:0"), Backing(), Backing()
    own.lives = (life,)
    windows.enter(0, 64, borrowed, 0, holders[0])
    found, _ = windows.enter(0, 64, own, 0, holders[1])
    assert found is borrowed and found.lives == (life,) and not found.is_gone
    life.lose("a test")
    assert found.is_gone
