"""Memory at a bus address, and arrays of a board's allocator: their barriers come with them, the device has none."""

from __future__ import annotations

import gc
import os
import weakref
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Space
from landbridge.device.import_source import BusAddress, DmaBuf, HostPointer, ImportSource
from landbridge.device.memory_provider import Caching, Side
from landbridge.device.protocols import AccessMode
from landbridge.tensor import Tensor
from landbridge.tensor.copy import _copy_by
from tests.device.caching_device import CachingDeviceAPI

N, BUS = 256, 0x1000_0000


class Board(CachingDeviceAPI):
    """A handle is a bus address; who has the memory says what of the caches reaches it."""

    begin_host_access = None  # type: ignore[assignment]
    end_host_access = None  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[ImportSource] = []
        self.mapped: dict[int, int] = {}

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        if not isinstance(source, BusAddress):
            raise lb.ZeroCopyError("this device takes bus addresses alone")
        self.sources.append(source)
        if source.host_address is not None:
            self.mapped[source.address] = source.host_address
        return Space(Device(self, index), "global", source.address)

    def host_pointer(self, space: Space) -> int:
        return self.mapped.get(space.handle, space.handle)


class BoardArray(np.ndarray):
    """As pynq's allocate gives it."""

    board: Board
    device_address: int | None = None

    def flush(self) -> None:
        assert self.device_address is not None
        self.board.write(self.device_address, self.tobytes())

    def invalidate(self) -> None:
        assert self.device_address is not None
        self[...] = np.frombuffer(self.board.read(self.device_address, self.nbytes), self.dtype).reshape(self.shape)


def allocate(board: Board) -> BoardArray:
    array = BoardArray(N, np.uint8, bytearray(N))
    array.board, array.device_address = board, BUS
    return array


def on(board: Board, source: Any) -> Tensor:
    return lb.asarray(source, device=Device(board, 0), copy=False)


def filled(board: Board, value: int, count: int) -> Tensor:
    board.write(0x2000_0000, bytes([value]) * count)
    return lb.from_bus_address(0x2000_0000, (count,), "uint8", device=Device(board, 0))


def test_an_array_reaches_the_device_by_its_bus_address() -> None:
    board = Board()
    array = allocate(board)
    whole, part = on(board, array), on(board, array[64:128])
    assert [(s.address, s.nbytes) for s in board.sources if isinstance(s, BusAddress)] == [(BUS, N), (BUS + 64, 64)]
    assert whole.nbytes == N and part.nbytes == 64


def test_its_barriers_stand_around_host_views() -> None:
    board = Board()
    array = allocate(board)
    there = on(board, array)
    with there.host_view("w") as a:
        a[:] = 5
        assert board.read(BUS, 4) == bytes(4)
    assert board.read(BUS, N) == b"\5" * N
    _copy_by(Device(board, 0), there, filled(board, 7, N), "test", None)
    assert array[0] == 5
    with there.host_view("r") as a:
        assert a.tolist() == [7] * N


def test_the_neighbours_of_what_is_written_stay() -> None:
    """Its barriers have no range: all of the array is one granule."""
    board = Board()
    array = allocate(board)
    left, right = on(board, array[:64]), on(board, array[64:])
    with left.host_view("rw") as a:
        a[:] = 1
        with right.host_view("rw") as b:
            b[:] = 2
        assert a.tolist() == [1] * 64
    assert board.read(BUS, N) == b"\1" * 64 + b"\2" * (N - 64)


def test_a_tensor_keeps_the_array_and_lets_it_go() -> None:
    board = Board()
    array = allocate(board)
    seen = weakref.ref(array)
    there = on(board, array)
    del array
    gc.collect()
    with there.host_view("w") as a:
        a[:] = 3
    assert board.read(BUS, 1) == b"\3"
    del there, a
    gc.collect()
    assert seen() is None


class Recorded:
    """A provider that notes what it is asked."""

    granule: int | None = 64
    caching = Caching.CACHED
    nbytes = N

    def __init__(self) -> None:
        self.calls: list[tuple[int, int, str, str]] = []

    def sync(self, offset: int, nbytes: int, mode: AccessMode, side: Side) -> None:
        self.calls.append((offset, nbytes, mode, side))

    def host_address(self) -> int | None:
        return None

    def device_address(self, device: Device) -> int | None:
        return BUS


@pytest.mark.parametrize(
    ("start", "stop", "mode", "calls"),
    [
        (0, N, "w", [(0, N, "w", "host"), (0, N, "w", "device")]),
        (70, 80, "w", [(64, 64, "rw", "host"), (64, 64, "w", "device")]),
        (60, 70, "r", [(0, 128, "r", "host"), (0, 128, "r", "device")]),
    ],
)
def test_a_provider_is_requested_whole_granules(
    start: int, stop: int, mode: AccessMode, calls: list[tuple[int, int, str, str]]
) -> None:
    board, provider, memory = Board(), Recorded(), np.zeros(N, np.uint8)
    t = lb.from_bus_address(
        BUS,
        (N,),
        "uint8",
        device=Device(board, 0),
        host_address=memory.ctypes.data,
        provider=provider,
        owner=memory,
    )
    with Tensor(t.storage, "uint8", (stop - start,), byte_offset=start).host_view(mode):
        pass
    assert provider.calls == calls


@pytest.mark.parametrize("granule", [64, None])
def test_parts_of_a_providers_memory_share_its_barriers(granule: int | None) -> None:
    board, provider, memory = Board(), Recorded(), np.zeros(N, np.uint8)
    provider.granule, provider.host_address = granule, lambda: memory.ctypes.data  # type: ignore[method-assign]

    def part(start: int, count: int) -> Tensor:
        return lb.from_bus_address(
            BUS + start, (count,), "uint8", device=Device(board, 0), provider=provider, owner=memory
        )

    left, right = part(0, 64), part(128, 64)
    with right.host_view("w") as a:
        a[:] = 5
        assert memory[128:192].tolist() == [5] * 64
        provider.calls.clear()
        with left.host_view("r"):
            pass
    whole = granule is None  # then what the host wrote to the other part is flushed before all is invalidated
    assert provider.calls == (
        [(0, N, "w", "device"), (0, N, "r", "host"), (0, N, "r", "device"), (0, N, "w", "device")]
        if whole
        else [(0, 64, "r", "host"), (0, 64, "r", "device"), (128, 64, "w", "device")]
    )
    with pytest.raises(lb.InputError, match="not in the 256 bytes that its provider has from 0x10000000 on"):
        part(N - 8, 9)


def test_refusals() -> None:
    board = Board()
    for address, host in ((-1, None), (BUS, -4)):
        with pytest.raises(lb.InputError, match="at least 0"):
            lb.from_bus_address(address, (4,), "uint8", device=Device(board, 0), host_address=host)
    with pytest.raises(lb.ZeroCopyError, match="bus addresses alone"):
        on(board, np.zeros(N, np.uint8))
    with pytest.raises(lb.ZeroCopyError, match="no address in this process"):
        lb.from_bus_address(BUS, (4,), "uint8", device="cpu")


def test_memory_behind_a_descriptor_reaches_the_device_by_that() -> None:
    class TakesFiles(CachingDeviceAPI):
        taken: list[ImportSource]

        def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
            self.taken.append(source)
            if isinstance(source, HostPointer):
                raise lb.ZeroCopyError("descriptors alone")
            return Space(Device(self, index), "global", 0x3000_0000)

    api = TakesFiles()
    api.taken = []
    fd = os.memfd_create("frames")
    os.ftruncate(fd, 1 << 13)
    t = lb.from_dma_buf(fd, (4096,), "uint8", device="cpu", offset=4096)
    inode = os.fstat(fd).st_ino
    os.close(fd)
    there = lb.asarray(Tensor(t.storage, "uint8", (64,), byte_offset=128), device=Device(api, 0), copy=False)
    (source,) = api.taken
    assert isinstance(source, DmaBuf) and (source.offset, source.nbytes) == (4096 + 128, 64)
    assert os.fstat(source.fd).st_ino == inode, "it is open for as long as the tensor lives"
    assert there.storage.part()[0] is t.storage.part()[0]
