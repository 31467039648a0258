"""What a pool takes from its device over a long time: it follows the peak of what is in use, not the requests."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.device.api import Device
from landbridge.errors import InputError, OutOfMemoryError
from landbridge.memory.allocators.base import Block, NdSize
from landbridge.memory.allocators.keepers import trim
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.pooled import PooledAllocator
from tests.memory.allocator_model import ModelDeviceAPI


@pytest.fixture
def pool() -> PooledAllocator:
    return PooledAllocator(NaiveAllocator(Device(ModelDeviceAPI(1 << 40), 0)))


def churn(pool: PooledAllocator, seed: int, steps: int = 10_000, most_live: int = 200) -> tuple[int, float]:
    """Random requests of 16 bytes to 1 MiB and returns, all given back at the end: the peak in bytes, and the
    fragmentation before that."""
    rng, live = random.Random(seed), list[Block]()
    now = peak = 0
    for _ in range(steps):
        if not live or (len(live) < most_live and rng.random() < 0.55):
            live.append(pool.allocate(int(2 ** rng.uniform(4, 20)), 64))
            now += live[-1].nbytes
            peak = max(peak, now)
        else:
            block = live.pop(rng.randrange(len(live)))
            now -= block.nbytes
            pool.deallocate(block)
    state = pool.state
    fragmentation = 1 - state.largest_hole / state.free_bytes
    for block in live:
        pool.deallocate(block)
    return peak, fragmentation


def test_results_of_many_sizes_use_the_pages_of_the_largest(pool: PooledAllocator) -> None:
    """One after another, as of runs whose sizes change: what the chunk never gave is no memory of the system's yet."""
    live = pool.allocate(50 << 20, 64)  # after it a chunk of 25 MiB
    rng, most, first, last = random.Random(0), 1 << 20, 1 << 60, 0
    for _ in range(300):
        block = pool.allocate(rng.randrange(1 << 17, most), 64)
        start = block.region.byte_offset
        first, last = min(first, start), max(last, start + block.nbytes)
        pool.deallocate(block)
    assert last - first <= most
    pool.deallocate(live)


@pytest.mark.parametrize(
    "seed_of_round", [lambda iteration: 0, lambda iteration: iteration], ids=["the same", "others"]
)
def test_ten_rounds_of_ten_thousand(pool: PooledAllocator, seed_of_round: Callable[[int], int]) -> None:
    peaks, reserved = [], []
    for iteration in range(10):
        peak, fragmentation = churn(pool, seed_of_round(iteration))
        peaks.append(peak)
        reserved.append(pool.reserved_bytes)
        assert 0 < fragmentation < 1
    # One chunk may still come, and none after it: how the first round's pieces lie decides which round needs it (before
    # pages that were used came first, so with the seeds from 100 on).
    assert reserved[-1] - reserved[0] <= 1 << 20
    assert reserved[-1] < 1.75 * max(peaks)
    assert pool.state.used_bytes == 0
    assert trim(pool.device) == reserved[-1]


def test_two_hundred_shapes(pool: PooledAllocator) -> None:
    """As a model with a dynamic length: three activations a run, the last kept until the next run."""
    rng, retained = random.Random(0), list[Block]()
    peak = requested = 0
    for _ in range(200):
        length = rng.randrange(1, 512)
        blocks = [pool.allocate(length * width * 4, 64) for width in (384, 1536, 384)]
        requested += sum(block.nbytes for block in blocks)
        peak = max(peak, sum(block.nbytes for block in (*retained, *blocks)))
        for block in (*retained, *blocks[:2]):
            pool.deallocate(block)
        retained = blocks[2:]
    assert requested > 400e6  # what a pool with a list for each size would have kept
    assert pool.reserved_bytes < 3 * peak < 17e6


def test_many_sizes_leave_no_lists_behind(pool: PooledAllocator) -> None:
    for nbytes in range(64, 64 * 5000, 64):
        pool.deallocate(pool.allocate(nbytes, 64))
    assert len(pool._waiting) < 10


def test_chunks_that_are_unused_become_one(pool: PooledAllocator) -> None:
    blocks = [pool.allocate(3 << 20, 64) for _ in range(4)]
    for block in blocks:
        pool.deallocate(block)
    reserved = pool.reserved_bytes
    whole = pool.allocate(reserved, 64)
    assert pool.reserved_bytes == reserved
    pool.deallocate(whole)


def test_a_small_block_never_holds_a_large_chunk_open(pool: PooledAllocator) -> None:
    large = pool.allocate(64 << 20, 64)
    small = pool.allocate(100, 64)
    pool.deallocate(large)
    assert pool.trim() == 64 << 20
    pool.deallocate(small)


def test_a_chunk_is_no_more_than_the_scope_has() -> None:
    api = ModelDeviceAPI(10_000)  # less than a chunk
    pool = PooledAllocator(NaiveAllocator(Device(api, 0)))
    block = pool.allocate(5000, 64)
    assert api.used_bytes == 8192
    with pytest.raises(OutOfMemoryError):
        pool.allocate(5000, 64)
    assert api.used_bytes == 8192
    pool.deallocate(block)


@pytest.mark.parametrize(("first", "then"), [(64, 700_000), (700_000, 64)])
def test_where_there_is_no_other_memory_any_hole_serves(first: int, then: int) -> None:
    """An arena of little more than a chunk: what small blocks left of it is there for a large one, and the reverse."""
    api = ModelDeviceAPI(1_100_000 if first < then else 704_512)
    pool = PooledAllocator(NaiveAllocator(Device(api, 0)))
    blocks = [pool.allocate(first, 64), pool.allocate(then, 64)]
    reserved = pool.reserved_bytes
    with pytest.raises(OutOfMemoryError):
        pool.allocate(2 << 20, 64)
    for block in blocks:
        pool.deallocate(block)
    assert pool.state.used_bytes == 0 and pool.trim() == reserved and api.used_bytes == 0


@given(st.data())
def test_what_fits_a_hole_is_served(data: st.DataObject) -> None:
    """Small memory, all of it in a few chunks: no request fails that some hole would do, once what waits is merged."""
    pool = PooledAllocator(NaiveAllocator(Device(ModelDeviceAPI(data.draw(st.integers(1 << 19, 5 << 18))), 0)))
    sizes = st.integers(1, 1 << 12) | st.integers(1 << 12, 1 << 20)
    live: list[Block] = []
    for _ in range(data.draw(st.integers(1, 25))):
        if live and data.draw(st.booleans()):
            pool.deallocate(live.pop(data.draw(st.integers(0, len(live) - 1))))
            continue
        size = data.draw(sizes)
        try:
            live.append(pool.allocate(size, 64))
        except OutOfMemoryError:
            assert pool.state.largest_hole < size
        spans = sorted((block.region.space.handle, block.region.byte_offset, block.nbytes) for block in live)
        for (space, begin, nbytes), (other, after, _) in pairwise(spans):
            assert space != other or begin + nbytes <= after


def test_at_the_cap_unused_chunks_of_the_other_kind_free_memory() -> None:
    pool = PooledAllocator(NaiveAllocator(Device(ModelDeviceAPI(1 << 30), 0)), cap=1 << 20)
    pool.deallocate(pool.allocate(100, 64))
    assert pool.reserved_bytes == 1 << 20
    assert pool.allocate(1 << 20, 64).nbytes == 1 << 20


def test_trim_reaches_through_pools_over_pools() -> None:
    api = ModelDeviceAPI(1 << 30)
    pools = [PooledAllocator(NaiveAllocator(Device(api, 0)))]
    for _ in range(5):
        pools.append(PooledAllocator(pools[-1]))
    pools[-1].deallocate(pools[-1].allocate(1 << 20, 64))
    assert api.used_bytes > 0
    trim(pools[0].device)
    assert api.used_bytes == 0


def test_whose_block_it_is(pool: PooledAllocator) -> None:
    other = PooledAllocator(NaiveAllocator(pool.device))
    block = other.allocate(64, 64)
    with pytest.raises(InputError, match="was not allocated by this pool"):
        pool.deallocate(block)
    other.deallocate(block)


def test_flat_blocks_only(pool: PooledAllocator) -> None:
    with pytest.raises(InputError, match=r"PooledAllocator of model:0 global hands out flat .* for float32\[8, 128\]"):
        pool.allocate(NdSize((8, 128), "float32"), 64)
    with pytest.raises(InputError, match="negative extent"):
        NdSize((8, -1), "float32")


@pytest.mark.parametrize("wrong", [{"granule": 3}, {"granule": 0}, {"cap": -1}, {"chunk": -1}])
def test_what_is_not_legal(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match="legal"):
        PooledAllocator(NaiveAllocator(Device(ModelDeviceAPI(1), 0)), **wrong)
