"""What an allocator kept goes back to its device with the allocator."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from landbridge.device.api import Device
from landbridge.memory.allocators.base import Allocator, QueuedUse
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.pooled import PooledAllocator
from landbridge.memory.allocators.workspace import StackAllocator
from tests.memory.allocator_model import ModelDeviceAPI, Work

KEEPERS = [PooledAllocator, StackAllocator]


@pytest.mark.parametrize("keeper", KEEPERS)
def test_nothing_stays_taken(keeper: Callable[[Allocator], Allocator]) -> None:
    api = ModelDeviceAPI(1 << 30)
    made = keeper(NaiveAllocator(Device(api, 0)))
    blocks = [made.allocate(size, 64) for size in (100, 1 << 18, 3 << 20)]
    for block in reversed(blocks):
        made.deallocate(block)
    assert api.used_bytes > 0  # it keeps them
    del made, block, blocks
    gc.collect()
    assert api.spaces == {}


@pytest.mark.parametrize("keeper", KEEPERS)
def test_not_before_pending_work_is_done(keeper: Callable[[Allocator], Allocator]) -> None:
    api, work = ModelDeviceAPI(1 << 30), Work()
    freed_early = list[int]()
    api.on_free = lambda handle: None if work.done else freed_early.append(handle)
    made = keeper(NaiveAllocator(Device(api, 0)))
    made.deallocate(made.allocate(100, 64), [QueuedUse(work)])
    del made
    gc.collect()
    assert (api.spaces, freed_early, work.done) == ({}, [], True)


def test_blocks_hold_their_pool() -> None:
    api = ModelDeviceAPI(1 << 30)
    block = PooledAllocator(NaiveAllocator(Device(api, 0))).allocate(100, 64)
    gc.collect()
    assert block.region.space.handle in api.spaces
