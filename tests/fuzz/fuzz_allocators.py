"""Allocators: any bytes are a program of requests, returns, finished work and trims, checked by a model of lists.

``python tests/fuzz/fuzz_allocators.py steps 100000`` runs that many random ones on each kind of allocator and says what
was left; other options are those of every target.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from draw import Draw

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.memory.allocator_model import AllocatorModel

from landbridge.device.api import Device
from landbridge.memory.allocators.arena import ArenaAllocator
from landbridge.memory.allocators.base import Allocator
from landbridge.memory.allocators.failure_callback import FailureCallbackAllocator
from landbridge.memory.allocators.keepers import trim
from landbridge.memory.allocators.limiting import LimitingAllocator
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.pooled import PooledAllocator
from landbridge.memory.allocators.size_classes import SizeClassAllocator
from landbridge.memory.allocators.statistics import StatisticsAllocator
from landbridge.memory.allocators.tracking import TrackingAllocator
from landbridge.memory.allocators.workspace import StackAllocator

INSTRUMENT = ("landbridge",)
SEEDS = [bytes([kind, *(n * 37 % 256 for n in range(60))]) for kind in range(8)] + [b""]

_BUDGET = 1 << 20
_MOST_LIVE = 40


def _pooled(device: Device) -> Allocator:
    return PooledAllocator(NaiveAllocator(device), chunk=1 << 14)


def _capped(device: Device) -> Allocator:
    return PooledAllocator(NaiveAllocator(device), chunk=1 << 12, granule=128, cap=1 << 18)


def _stacked(device: Device) -> Allocator:
    upstream = FailureCallbackAllocator(NaiveAllocator(device), lambda nbytes: trim(device) > 0)
    limited = LimitingAllocator(PooledAllocator(upstream, chunk=1 << 13), 1 << 18)
    return StatisticsAllocator(TrackingAllocator(limited))


def _pool_over_pool(device: Device) -> Allocator:
    return PooledAllocator(_capped(device), granule=256, chunk=1 << 15)


#: What is fuzzed, and whether its blocks are of one queue.
KINDS: dict[str, tuple[Callable[[Device], Allocator], bool]] = {
    "naive": (NaiveAllocator, False),
    "pooled": (_pooled, False),
    "capped": (_capped, False),
    "stacked": (_stacked, False),
    "pool over pool": (_pool_over_pool, False),
    "size classes": (lambda device: SizeClassAllocator(NaiveAllocator(device)), False),
    "arena": (lambda device: ArenaAllocator(NaiveAllocator(device), 1 << 16), False),
    "workspace": (lambda device: StackAllocator(NaiveAllocator(device)), True),
}


class Steps:
    """Steps on one kind of allocator."""

    def __init__(self, kind: str) -> None:
        build, self._one_queue = KINDS[kind]
        self.model = AllocatorModel(build, _BUDGET)
        self.refused = 0

    def step(self, draw: Draw) -> None:
        """One step, as ``draw`` says."""
        model = self.model
        queues = (model.queues[0],) if self._one_queue else (None, *model.queues)
        match draw.below(8):
            case 0 | 1 | 2 if len(model.live) < _MOST_LIVE:
                size = draw.byte() << draw.below(10)
                self.refused += not model.allocate(size, 1 << draw.below(13), draw.choice(queues))
            case 6:
                model.finish(draw.byte())
            case 7 if draw.below(16) == 0:
                trim(model.device)
            case _ if model.live:
                used = [draw.choice(queues) for _ in range(max(0, draw.below(5) - 2))]
                model.deallocate(draw.byte(), used)

    def end(self) -> None:
        """Give everything back and look for what is left."""
        self.model.deallocate_all()
        if isinstance(self.model.allocator, ArenaAllocator):
            self.model.allocator.close()
        trim(self.model.device)
        self.model.check_no_leak()


def check(data: bytes) -> None:
    draw = Draw(data)
    steps = Steps(draw.choice(tuple(KINDS)))
    while draw.rest:
        steps.step(draw)
    steps.end()


def run_steps(count: int, seed: int) -> None:
    """``count`` random steps on each kind of allocator, with a line of what happened."""
    for kind in KINDS:
        rng = random.Random(seed)
        steps = Steps(kind)
        began, objects = time.perf_counter(), []
        for number in range(count):
            steps.step(Draw(rng.randbytes(12)))
            if (number + 1) % (count // 4 or 1) == 0:
                gc.collect()
                objects.append(len(gc.get_objects()))
        steps.end()
        seconds = time.perf_counter() - began
        print(f"{kind}: {count} steps, {steps.refused} refused, {seconds:.0f} s, nothing left; objects {objects}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["steps"]:
        run_steps(int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    else:
        from harness import restart_under_atheris

        restart_under_atheris(__file__)
