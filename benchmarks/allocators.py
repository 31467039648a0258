"""What memory costs to ask for, and how much of it a pool keeps.

python benchmarks/allocators.py
"""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import landbridge as lb
from landbridge.device.api import Device
from landbridge.device.registry import device
from landbridge.memory.allocators.base import Allocator, Block
from landbridge.memory.allocators.limiting import LimitingAllocator
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.pooled import PooledAllocator
from landbridge.memory.allocators.statistics import StatisticsAllocator
from landbridge.memory.allocators.tracking import TrackingAllocator

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT)]

from measure import interleaved, write  # noqa: E402
from tests.memory.allocator_model import ModelDeviceAPI  # noqa: E402

MIB = 1 << 20


def pair(allocator: Allocator) -> Callable[[], None]:
    """Take 1 MiB and give it back."""
    allocate, deallocate = allocator.allocate, allocator.deallocate
    return lambda: deallocate(allocate(MIB, 64))


def speed() -> list[tuple[str, float, str]]:
    """Microseconds for 1 MiB, taken and given back, and of each half."""
    cpu = device("cpu")
    pool = PooledAllocator(NaiveAllocator(cpu))
    many = [pool.allocate(MIB, 64) for _ in range(64)]
    blocks: list[Block] = []

    def take() -> None:
        for _ in range(64):
            blocks.append(pool.allocate(MIB, 64))

    def give() -> None:
        for _ in range(64):
            pool.deallocate(blocks.pop())

    for block in many:
        pool.deallocate(block)
    actions: dict[str, Callable[[], object]] = {
        "pool, a hit and its return": pair(PooledAllocator(NaiveAllocator(cpu))),
        "statistics(pool)": pair(StatisticsAllocator(PooledAllocator(NaiveAllocator(cpu)))),
        "limiting(tracking(pool))": pair(
            LimitingAllocator(TrackingAllocator(PooledAllocator(NaiveAllocator(cpu))), 1 << 30)
        ),
        "naive, untouched pages": pair(NaiveAllocator(cpu)),
        "lb.empty": lambda: lb.empty(MIB, dtype="uint8", device=cpu),
        "numpy.empty": lambda: np.empty(MIB, np.uint8),
    }
    try:
        import torch
    except ImportError:
        pass
    else:
        actions["torch.empty"] = lambda: torch.empty(MIB, dtype=torch.uint8)
    gc.disable()
    rows = [(name, spent * 1e6, "us") for name, spent in interleaved(actions, rounds=200, calls=200).items()]
    both = interleaved({"hit and return of 64": lambda: (take(), give())}, rounds=200)["hit and return of 64"]
    take_only, half = [], 0.0
    for _ in range(200):
        half = interleaved({"take": take}, rounds=1)["take"]
        take_only.append(half)
        while blocks:
            pool.deallocate(blocks.pop())
    gc.enable()
    hit = sorted(take_only)[len(take_only) // 2] / 64
    return [("pool, a hit alone", hit * 1e6, "us"), ("its return alone", (both / 64 - hit) * 1e6, "us"), *rows]


def churn() -> list[tuple[str, float, str]]:
    """Ten rounds of 10,000 random requests and returns of 16 B to 1 MiB, 200 at most out at a time."""
    pool = PooledAllocator(NaiveAllocator(Device(ModelDeviceAPI(1 << 40), 0)))
    reserved, peak, fragmentation = [], 0, 0.0
    for seed in range(10):
        rng, live = random.Random(seed), list[Block]()
        now = 0
        for _ in range(10_000):
            if not live or (len(live) < 200 and rng.random() < 0.55):
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
        reserved.append(pool.reserved_bytes)
    return [
        ("random requests, most in use at a time", peak / 1e6, "MB"),
        ("taken from the device after round 1", reserved[0] / 1e6, "MB"),
        ("after round 10", reserved[-1] / 1e6, "MB"),
        ("fragmentation at the end of round 10", fragmentation, "1 - largest hole / free"),
    ]


def dynamic_shapes() -> list[tuple[str, float, str]]:
    """200 lengths of a model with three activations each, the last kept until the next run."""
    pool = PooledAllocator(NaiveAllocator(Device(ModelDeviceAPI(1 << 40), 0)))
    rng, retained = random.Random(0), list[Block]()
    peak, sizes = 0, set[tuple[int, int]]()
    for _ in range(200):
        length = rng.randrange(1, 512)
        blocks = [pool.allocate(length * width * 4, 64) for width in (384, 1536, 384)]
        sizes |= {(block.nbytes, number) for number, block in enumerate(blocks)}
        peak = max(peak, sum(block.nbytes for block in (*retained, *blocks)))
        for block in (*retained, *blocks[:2]):
            pool.deallocate(block)
        retained = blocks[2:]
    return [
        ("200 dynamic shapes, most in use at a time", peak / 1e6, "MB"),
        ("taken from the device", pool.reserved_bytes / 1e6, "MB"),
        ("a list for each exact size would have taken", sum(size for size, _ in sizes) / 1e6, "MB"),
    ]


def main() -> None:
    write("allocators", ("what", "median", "unit"), [*speed(), *churn(), *dynamic_shapes()])


if __name__ == "__main__":
    main()
