"""State machines: any order of requests, returns, finished work and trims, against a model of lists."""

from __future__ import annotations

import logging

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from landbridge.device.api import Device
from landbridge.errors import OutOfMemoryError
from landbridge.memory.allocators.arena import ArenaAllocator
from landbridge.memory.allocators.base import Allocator
from landbridge.memory.allocators.failure_callback import FailureCallbackAllocator
from landbridge.memory.allocators.keepers import trim
from landbridge.memory.allocators.limiting import LimitingAllocator
from landbridge.memory.allocators.logging import LoggingAllocator
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.out_of_memory import allocate_or_trim
from landbridge.memory.allocators.pooled import PooledAllocator
from landbridge.memory.allocators.statistics import StatisticsAllocator
from landbridge.memory.allocators.tracking import TrackingAllocator
from landbridge.memory.allocators.workspace import StackAllocator
from tests.memory.allocator_model import AllocatorModel

SIZES = st.one_of(st.integers(0, 300), st.sampled_from([64, 4096, 5000, 1 << 16]), st.integers(0, 1 << 18))
ALIGNMENTS = st.sampled_from([1, 64, 256, 4096])


class Machine(RuleBasedStateMachine):
    """Rules for any allocator; ``build`` makes the one under test."""

    budget = 1 << 24

    def build(self, device: Device) -> Allocator:
        return NaiveAllocator(device)

    def __init__(self) -> None:
        super().__init__()
        self.model = AllocatorModel(self.build, self.budget)

    @rule(size=SIZES, alignment=ALIGNMENTS, queue=st.sampled_from([None, 0, 1, 2]))
    def allocate(self, size: int, alignment: int, queue: int | None) -> None:
        self.model.allocate(size, alignment, None if queue is None else self.model.queues[queue])

    @precondition(lambda self: self.model.live)
    @rule(index=st.integers(0, 99))
    def deallocate(self, index: int) -> None:
        self.model.deallocate(index, ())

    @precondition(lambda self: self.model.live)
    @rule(index=st.integers(0, 99), queues=st.lists(st.sampled_from([None, 0, 1, 2]), min_size=1, max_size=2))
    def deallocate_in_use(self, index: int, queues: list[int | None]) -> None:
        self.model.deallocate(index, [None if queue is None else self.model.queues[queue] for queue in queues])

    @rule(index=st.integers(0, 99))
    def finish(self, index: int) -> None:
        self.model.finish(index)

    @rule()
    def trim(self) -> None:
        before = self.model.api.used_bytes
        assert trim(self.model.device) == before - self.model.api.used_bytes

    def teardown(self) -> None:
        self.model.deallocate_all()
        self.end()
        trim(self.model.device)
        self.model.check_no_leak()

    def end(self) -> None:
        """What has to be closed before a leak would show."""


class Pool(Machine):
    def build(self, device: Device) -> Allocator:
        self.pool = PooledAllocator(NaiveAllocator(device), chunk=1 << 14)
        return self.pool

    @invariant()
    def bytes_add_up(self) -> None:
        state = self.pool.state
        assert state.reserved_bytes == self.model.api.used_bytes == state.used_bytes + state.free_bytes
        assert 0 <= state.largest_hole <= state.free_bytes
        parked = [p for p in self.model.pending if not p.work.done]
        assert state.used_bytes >= self.model.live_bytes
        assert state.used_bytes == self.model.live_bytes or parked


class CappedPool(Pool):
    def build(self, device: Device) -> Allocator:
        self.pool = PooledAllocator(NaiveAllocator(device), chunk=1 << 14, granule=256, cap=1 << 19)
        return self.pool

    @invariant()
    def cap_holds(self) -> None:
        assert self.model.api.used_bytes <= 1 << 19


class PoolOnSmallDevice(Machine):
    """What the pool holds unused never stands in the way of another scope's request."""

    budget = 1 << 19

    def build(self, device: Device) -> Allocator:
        return PooledAllocator(NaiveAllocator(device), chunk=1 << 17)

    @rule(size=st.integers(1, 1 << 19))
    def another_allocator(self, size: int) -> None:
        naive = NaiveAllocator(self.model.device)
        try:
            block = allocate_or_trim(naive, size, 32)
        except OutOfMemoryError:
            assert size + 7 + self.model.api.used_bytes > self.budget
            return
        naive.deallocate(block)


class Arena(Machine):
    def build(self, device: Device) -> Allocator:
        self.arena = ArenaAllocator(NaiveAllocator(device), 1 << 18)
        return self.arena

    def end(self) -> None:
        assert self.arena.used_bytes == 0
        self.arena.close()


class Workspace(Machine):
    """A stack of one queue: all its work is there."""

    def build(self, device: Device) -> Allocator:
        return StackAllocator(NaiveAllocator(device))

    @rule(size=SIZES, alignment=ALIGNMENTS, queue=st.just(0))
    def allocate(self, size: int, alignment: int, queue: int | None) -> None:
        self.model.allocate(size, alignment, self.model.queues[0])

    @precondition(lambda self: self.model.live)
    @rule(index=st.integers(0, 99), queues=st.just([0]))
    def deallocate_in_use(self, index: int, queues: list[int | None]) -> None:
        self.model.deallocate(-1 - index % 3, [self.model.queues[0]])


class Stacked(Machine):
    """Every adaptor at once, over a pool over an arena's worth of memory."""

    limit = 1 << 18

    def build(self, device: Device) -> Allocator:
        self.callbacks = 0

        def free_memory(nbytes: int) -> bool:
            self.callbacks += 1
            return trim(device) > 0

        upstream = FailureCallbackAllocator(NaiveAllocator(device), free_memory)
        self.limited = LimitingAllocator(PooledAllocator(upstream, chunk=1 << 15), self.limit)
        self.tracked = TrackingAllocator(self.limited)
        quiet = logging.getLogger("landbridge.memory.quiet")
        quiet.disabled = True
        self.counted = StatisticsAllocator(LoggingAllocator(self.tracked, quiet))
        return self.counted

    @invariant()
    def all_count_the_same(self) -> None:
        model, counters = self.model, self.counted.counters
        assert (counters.current_count, counters.current_bytes) == (len(model.live), model.live_bytes)
        assert counters.peak_bytes >= counters.current_bytes
        assert self.limited.used_bytes == model.live_bytes <= self.limit
        assert sorted(h.nbytes for h in self.tracked.holdings) == sorted(b.nbytes for b in model.live)

    @rule(size=st.integers(1 << 17, 1 << 19))
    def allocate_much(self, size: int) -> None:
        before = self.limited.used_bytes
        if not self.model.allocate(size, 64, None):
            assert before + size > self.limit  # nothing but the limit stands in the way


class StackedOnSmallDevice(Stacked):
    """Where the callback must make room."""

    budget = 3 << 16

    @rule(size=st.just(1))
    def allocate_much(self, size: int) -> None:
        self.model.allocate(size, 64, None)


QUICK = settings(max_examples=25, stateful_step_count=40)
for machine in (
    Machine,
    Pool,
    CappedPool,
    PoolOnSmallDevice,
    Arena,
    Workspace,
    Stacked,
    StackedOnSmallDevice,
):
    case = machine.TestCase
    case.settings = QUICK
    globals()[f"Test{machine.__name__}"] = case
del machine, case
