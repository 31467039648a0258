"""Buffers are kept by size class, never shared, bounded by what was in use, and none comes again that others have."""

from __future__ import annotations

import random
from threading import Barrier, Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from landbridge.device.api import Device
from landbridge.errors import InputError, OutOfMemoryError
from landbridge.memory.allocators.base import Block, NdSize, QueuedUse
from landbridge.memory.allocators.keepers import retire, trim
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.out_of_memory import allocate_or_trim
from landbridge.memory.allocators.size_classes import SizeClassAllocator, size_class
from tests.memory.allocator_model import ModelDeviceAPI, Work
from tests.memory.test_allocator_machines import QUICK, Machine

UNIT = 64  # of the model's memory


def made(budget: int = 1 << 40) -> tuple[ModelDeviceAPI, SizeClassAllocator]:
    api = ModelDeviceAPI(budget)
    return api, SizeClassAllocator(NaiveAllocator(Device(api, 0)))


@given(st.integers(0, 1 << 40), st.sampled_from([64, 4096, 2 << 20, 1 << 30]))
def test_a_class_is_at_most_an_eighth_too_large(nbytes: int, unit: int) -> None:
    found, needed = size_class(nbytes, unit), max(1, -(-nbytes // unit)) * unit
    assert found % unit == 0
    assert needed <= found <= needed + needed // 8
    assert size_class(found, unit) == found  # whose buffers serve it
    assert needed > 16 * unit or found == needed


@given(st.integers(1, 1 << 30), st.integers(1, 1 << 30))
def test_more_bytes_have_no_smaller_class(first: int, second: int) -> None:
    low, high = sorted((first, second))
    assert size_class(low, 4096) <= size_class(high, 4096)


def test_what_comes_back_serves_its_class() -> None:
    api, allocator = made()
    block = allocator.allocate(100 * UNIT, 64)
    allocator.deallocate(block)
    again = allocator.allocate(97 * UNIT + 3, 64)  # of the class of 104 units
    assert again.region == block.region
    assert size_class(97 * UNIT + 3, UNIT) == size_class(100 * UNIT, UNIT) == again.nbytes
    other = allocator.allocate(97 * UNIT + 3, 64)
    assert other.region.space != again.region.space
    assert len(api.spaces) == 2


def test_alignment_that_a_buffer_has_not() -> None:
    _, allocator = made()
    block = allocator.allocate(4096, 64)
    allocator.deallocate(block)
    aligned = allocator.allocate(4096, 1 << 21)
    assert aligned.region.space != block.region.space
    allocator.deallocate(aligned)
    assert allocator.allocate(4096, 4096).region == aligned.region


@settings(deadline=None)
@given(st.integers(0, 1 << 30))
def test_random_sizes_in_threads_are_bounded(seed: int) -> None:
    """200 requests and returns in each of four threads: reserved never exceeds twice what was in use at one time, by
    classes, and two blocks that are out never share a buffer."""
    api, allocator = made()
    barrier, out, failures = Barrier(4), dict[int, int](), list[BaseException]()

    def churn(number: int) -> None:
        rng, live = random.Random(seed + number), list[Block]()
        barrier.wait()
        try:
            for _ in range(200):
                if live and rng.random() < 0.5:
                    block = live.pop(rng.randrange(len(live)))
                    assert out.pop(block.region.space.handle) == number
                    allocator.deallocate(block)
                else:
                    live.append(allocator.allocate(int(2 ** rng.uniform(0, 24)), 64))
                    assert out.setdefault(live[-1].region.space.handle, number) == number
            for block in live:
                del out[block.region.space.handle]
                allocator.deallocate(block)
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=churn, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert allocator.retained_bytes <= allocator._most_bytes
    assert api.used_bytes == allocator.retained_bytes
    assert trim(allocator.device) > 0 == api.used_bytes


class Bounded(Machine):
    """As any allocator, and: what is unused is no more than was in use at one time."""

    def build(self, device: Device) -> SizeClassAllocator:
        self.classes = SizeClassAllocator(NaiveAllocator(device))
        self.was_pending = False
        return self.classes

    @invariant()
    def unused_is_bounded(self) -> None:
        self.was_pending |= bool(self.model.pending)  # such a block stays for as long as its work does, and a turn
        assert self.was_pending or self.classes.retained_bytes <= self.classes._most_bytes
        assert self.model.api.used_bytes >= self.model.live_bytes


TestBounded = Bounded.TestCase
TestBounded.settings = QUICK


class Retired(RuleBasedStateMachine):
    """Spaces that others have too are never handed out again."""

    blocks: Bundle[Block] = Bundle("blocks")

    def __init__(self) -> None:
        super().__init__()
        self.api, self.allocator = made()
        self.gone: set[int] = set()

    @rule(target=blocks, size=st.integers(0, 3000))
    def take(self, size: int) -> Block:
        block = self.allocator.allocate(size, 64)
        assert block.region.space.handle not in self.gone
        return block

    @rule(block=blocks)
    def others_have_it(self, block: Block) -> None:
        if block.region.space.handle in self.api.spaces:
            retire(block.region.space)
            self.gone.add(block.region.space.handle)

    @rule(block=consumes(blocks))
    def give_back(self, block: Block) -> None:
        self.allocator.deallocate(block)
        assert block.region.space.handle not in self.gone & self.api.spaces.keys()


TestRetired = Retired.TestCase
TestRetired.settings = QUICK


def test_where_memory_runs_out_a_buffer_is_as_large_as_requested() -> None:
    api, allocator = made(budget=100 * UNIT)
    block = allocator.allocate(100 * UNIT, 64)  # whose class has 104 units
    assert block.nbytes == 100 * UNIT
    with pytest.raises(OutOfMemoryError):
        allocator.allocate(1, 64)
    allocator.deallocate(block)
    assert api.used_bytes == 0  # it is of no class


def test_retained_buffers_free_memory() -> None:
    api, allocator = made(budget=64 * UNIT)
    blocks = [allocator.allocate(16 * UNIT, 64) for _ in range(4)]
    for block in blocks:
        allocator.deallocate(block)
    assert api.used_bytes == 64 * UNIT
    assert allocate_or_trim(allocator, 40 * UNIT, 64).nbytes == 40 * UNIT


def test_work_that_is_pending_comes_before_the_next_use() -> None:
    api, allocator = made()
    device, ordered, elsewhere = allocator.device, Work(), Work()
    allocator.deallocate(allocator.allocate(64, 64, device), [QueuedUse(ordered, device)])
    block = allocator.allocate(64, 64, device)
    assert ([use.event for use in block.uses], ordered.done) == ([ordered], False)
    allocator.deallocate(block, [QueuedUse(elsewhere, device)])
    again = allocator.allocate(64, 64)
    assert (again.uses, elsewhere.done, len(api.spaces)) == ((), True, 1)


def test_what_is_not_legal() -> None:
    _, allocator = made()
    with pytest.raises(InputError, match="hands out flat blocks"):
        allocator.allocate(NdSize((2, 2), "float32"), 64)
    block = allocator.allocate(64, 64)
    allocator.deallocate(block)
    with pytest.raises(InputError, match="is not out of this allocator"):
        allocator.deallocate(block)


def test_buffers_go_back_with_the_allocator() -> None:
    api, allocator = made()
    allocator.deallocate(allocator.allocate(64, 64))
    assert api.used_bytes
    del allocator
    assert not api.used_bytes
