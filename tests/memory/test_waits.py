"""What waits for work that is queued on memory: each access of the host or of a device that must come after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device
from landbridge.memory.accesses import Access
from landbridge.memory.allocators.base import QueuedUse
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from tests.memory.test_accesses import Work

N = 64


@pytest.fixture
def npu() -> Device:
    return Device(SimLazyDeviceAPI(), 0)


def half_of(whole: Tensor) -> Tensor:
    """Its second half."""
    return Tensor(whole.storage, "uint8", (N,), None, N)


def queued(on: Tensor, writes: bool, start: int, stop: int, queue: Any = None) -> Work:
    """Work of another queue, unless one is named, on those bytes."""
    work = Work(over=False)
    on.storage.queue(Access(start, stop, writes, "a test"), QueuedUse(work, queue))
    return work


@pytest.mark.parametrize(
    ("end", "writes", "start", "stop", "waits"),
    [
        ("source", True, N, N + 1, True),
        ("source", True, 2 * N - 1, 2 * N, True),
        ("source", True, 0, N, False),
        ("source", False, 0, 2 * N, False),
        ("target", True, N, N + 1, True),
        ("target", False, 2 * N - 1, 2 * N, True),
        ("target", True, 0, N, False),
    ],
)
def test_a_copy_by_a_device_waits_for_other_queues(
    npu: Device, end: str, writes: bool, start: int, stop: int, waits: bool
) -> None:
    ends = {name: lb.asarray(np.arange(2 * N, dtype=np.uint8), device=npu) for name in ("source", "target")}
    work = queued(ends[end], writes, start, stop)
    copy_tensor(half_of(ends["target"]), half_of(ends["source"]), cause="test")
    assert work.waited is waits


def test_a_copy_by_a_device_waits_for_no_work_of_its_own_queue(npu: Device) -> None:
    source, target = (lb.asarray(np.zeros(N, np.uint8), device=npu) for _ in range(2))
    work = [queued(t, True, 0, N, queue=npu) for t in (source, target)]
    copy_tensor(target, source, cause="test")
    assert not any(w.waited for w in work)


def use_address(t: Tensor) -> None:
    assert t.storage.address


def open_view(t: Tensor) -> None:
    with t.host_view("r"):
        pass


def invalidate(t: Tensor) -> None:
    t.host_view("r").invalidate()


@pytest.mark.parametrize("use", [use_address, open_view, invalidate, np.asarray])
def test_the_host_waits_for_what_a_device_writes(npu: Device, use: Callable[[Tensor], object]) -> None:
    shared = lb.empty((N,), dtype="uint8", device=npu, scope="shared")
    work = queued(shared, True, N - 1, N)
    use(shared)
    assert work.waited
