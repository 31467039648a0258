"""Allocators: blocks never overlap, what is freed is used again, and memory can be given back."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from itertools import pairwise
from threading import Event, Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.device.api import Device
from landbridge.device.registry import device
from landbridge.errors import InputError, OutOfMemoryError
from landbridge.memory.allocators.base import Block
from landbridge.memory.allocators.default import default_allocator
from landbridge.memory.allocators.keepers import trim
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.out_of_memory import allocate_or_trim
from landbridge.memory.allocators.pooled import PooledAllocator
from tests.device.queueing_device import QueueingDeviceAPI

CPU = device("cpu")


def start_of(block: Block) -> int:
    return int(block.region.space.handle) + block.region.byte_offset


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 3 << 20), st.sampled_from([1, 64, 256, 4096, 1 << 16]), st.integers(0, 5)),
        max_size=40,
    )
)
def test_pool_invariants(requests: list[tuple[int, int, int]]) -> None:
    pool = PooledAllocator(NaiveAllocator(CPU))
    live: list[Block] = []
    for nbytes, alignment, free in requests:
        block = pool.allocate(nbytes, alignment)
        assert block.nbytes >= nbytes
        assert start_of(block) % max(alignment, 64) == 0
        live.append(block)
        for _ in range(free):
            if live:
                pool.deallocate(live.pop(len(live) // 2))
        spans = sorted((start_of(b), start_of(b) + b.nbytes) for b in live)
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
        assert pool.state.free_bytes + sum(b.nbytes for b in live) == pool.reserved_bytes
    for block in live:
        pool.deallocate(block)
    assert pool.state.free_bytes == pool.reserved_bytes == pool.trim()
    assert pool.reserved_bytes == 0


def test_pool_reuses_splits_and_merges() -> None:
    pool = PooledAllocator(NaiveAllocator(CPU))
    first = pool.allocate(1000, 64)
    pool.deallocate(first)
    assert pool.allocate(1000, 64) is first  # the same size again: the same block

    pool = PooledAllocator(NaiveAllocator(CPU), chunk=2 << 20)
    quarters = [pool.allocate(512 << 10, 64) for _ in range(4)]
    assert pool.reserved_bytes == 2 << 20
    assert pool.state.largest_hole == 0
    for block in quarters:
        pool.deallocate(block)
    whole = pool.allocate(2 << 20, 64)  # only after the quarters merged
    assert pool.reserved_bytes == 2 << 20
    assert pool.trim() == 0
    pool.deallocate(whole)


def test_pool_cap() -> None:
    pool = PooledAllocator(NaiveAllocator(CPU), cap=1 << 20)
    block = pool.allocate(600 << 10, 64)
    with pytest.raises(OutOfMemoryError, match="its cap of 1048576 bytes taken, largest hole"):
        pool.allocate(600 << 10, 64)
    pool.deallocate(block)
    pool.deallocate(pool.allocate(600 << 10, 64))


def test_pool_refuses_foreign_blocks() -> None:
    naive = NaiveAllocator(CPU)
    block = naive.allocate(64, 64)
    with pytest.raises(InputError, match="was not allocated by this pool"):
        PooledAllocator(naive).deallocate(block)
    naive.deallocate(block)


def test_default_follows_the_kind() -> None:
    api = QueueingDeviceAPI()
    pool = default_allocator(Device(api, 0), "shared")
    assert isinstance(pool, PooledAllocator)
    assert default_allocator(Device(api, 0), "shared") is pool
    assert default_allocator(Device(api, 1), "shared") is not pool
    first, second = pool.allocate(1, 1), pool.allocate(1, 1)
    # alignment 256 of the kind, so that no two blocks share a granule of 64
    assert abs(first.region.byte_offset - second.region.byte_offset) >= 256


def test_threads_never_get_the_same_bytes() -> None:
    pool = PooledAllocator(NaiveAllocator(CPU))
    clashes: list[str] = []

    def work(stamp: int) -> None:
        for iteration in range(150):
            nbytes = 64 << (iteration % 9)
            block = pool.allocate(nbytes, 64)
            ctypes.memset(start_of(block), stamp, nbytes)
            time.sleep(0)
            if ctypes.string_at(start_of(block), nbytes) != bytes([stamp]) * nbytes:
                clashes.append(f"{stamp} at iteration {iteration}")
            pool.deallocate(block)

    threads = [Thread(target=work, args=(stamp,)) for stamp in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clashes == []
    assert pool.state.free_bytes == pool.reserved_bytes


def test_a_child_process_has_pools_of_its_own() -> None:
    pool = default_allocator(CPU)
    block = pool.allocate(5000, 64)
    pool.deallocate(block)
    ctypes.memset(start_of(block), 1, 5000)
    child = os.fork()
    if child == 0:
        owned = default_allocator(CPU).allocate(5000, 64)
        ctypes.memset(start_of(owned), 2, 5000)
        os._exit(0 if default_allocator(CPU) is not pool else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert ctypes.string_at(start_of(block), 5000) == b"\1" * 5000


def test_a_child_process_asks_no_pool_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("landbridge.process.locks._PATIENCE", 0.1)  # a fork waits so long for who holds a lock
    pool = PooledAllocator(NaiveAllocator(CPU))
    block = pool.allocate(5000, 64)
    held, done = Event(), Event()

    def hold() -> None:
        with pool._lock:
            held.set()
            done.wait()

    thread = Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        trim(CPU)  # the thread that holds the lock is not here
        os._exit(0)
    for _ in range(1000):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.01)
    else:
        os.kill(child, signal.SIGKILL)
    done.set()
    thread.join()
    assert ended and status == 0
    pool.deallocate(block)


def test_out_of_memory_trims_and_retries() -> None:
    class Small(QueueingDeviceAPI):
        def alloc_data_space(self, index, nbytes, alignment, scope, type_hint):  # type: ignore[no-untyped-def]
            if sum(len(buffer) for buffer in self.buffers.values()) + nbytes > 3 << 20:
                raise OutOfMemoryError("3 MiB is all there is")
            return super().alloc_data_space(index, nbytes, alignment, scope, type_hint)

    where = Device(Small(), 0)
    pool = default_allocator(where, "global")
    pool.deallocate(pool.allocate(2 << 20, 256))
    shared = default_allocator(where, "shared")
    retained = allocate_or_trim(shared, 2 << 20, 256)  # only after the other pool gave its chunk back
    with pytest.raises(OutOfMemoryError, match=r"queueing:0 global: 2097152 bytes requested.*3 MiB is all there is"):
        allocate_or_trim(pool, 2 << 20, 256)
    shared.deallocate(retained)
    assert trim(where) == 2 << 20
