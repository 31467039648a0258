"""Allocators, copies, Tensors and Sessions on sim:lazy, with several seeds; what the runtime does wrong, it raises.

Code of target ``llvm`` cannot use scope ``global`` of sim:lazy, which the host does not see: Sessions run on its
scope ``shared``, or have their data in ``global`` and the code on ``cpu``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Stream
from landbridge.device.stream import set_stream
from landbridge.errors import DeviceLostError, OutOfMemoryError, ZeroCopyError
from landbridge.memory.allocation import allocate
from landbridge.memory.allocators.arena import ArenaAllocator
from landbridge.memory.allocators.base import Allocator
from landbridge.memory.allocators.failure_callback import FailureCallbackAllocator
from landbridge.memory.allocators.limiting import LimitingAllocator
from landbridge.memory.allocators.logging import LoggingAllocator
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.pooled import PooledAllocator
from landbridge.memory.allocators.statistics import StatisticsAllocator
from landbridge.memory.allocators.tracking import TrackingAllocator
from landbridge.memory.allocators.workspace import StackAllocator
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from tests.whole_models.small_models import add, projection

VALUES = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.fixture(params=range(4), ids="seed {}".format)
def api(request: pytest.FixtureRequest) -> Iterator[SimLazyDeviceAPI]:
    made = SimLazyDeviceAPI(request.param)
    yield made
    assert made.violations == []
    made.check_freed_blocks()


@pytest.fixture
def dev(api: SimLazyDeviceAPI) -> Device:
    return Device(api, 0)


def host(tensor: Tensor) -> np.ndarray:
    return np.asarray(tensor.to_device("cpu"))


@pytest.mark.sample(24)
@pytest.mark.parametrize("scope", ["global", "shared"])
@pytest.mark.parametrize(
    "stacked",
    [
        lambda base: base,
        PooledAllocator,
        StatisticsAllocator,
        TrackingAllocator,
        lambda base: LimitingAllocator(base, 1 << 24),
        LoggingAllocator,
        lambda base: FailureCallbackAllocator(base, lambda nbytes: False),
        lambda base: ArenaAllocator(base, 1 << 20, granule=256),
        StackAllocator,
        lambda base: StatisticsAllocator(PooledAllocator(base, granule=256)),
    ],
    ids=[
        "naive",
        "pooled",
        "statistics",
        "tracking",
        "limiting",
        "logging",
        "failure_callback",
        "arena",
        "workspace",
        "statistics(pooled)",
    ],
)
def test_allocators(dev: Device, api: SimLazyDeviceAPI, scope: str, stacked: Callable[[Allocator], Allocator]) -> None:
    """Blocks come and go while copies from and to them are queued on streams that nothing orders."""
    allocator = stacked(NaiveAllocator(dev, scope))
    streams = [api.create_stream(0) for _ in range(3)]
    rng = np.random.default_rng(0)
    live: list[tuple[Tensor, int]] = []
    for step in range(40):
        nbytes = 4 * int(rng.integers(1, 4000))
        with set_stream(streams[int(rng.integers(len(streams)))]):
            first, second = (
                Tensor(allocate(dev, nbytes, scope=scope, allocator=allocator), "int32", (nbytes // 4,))
                for _ in range(2)
            )
            copy_tensor(first, lb.asarray(np.full(first.shape, step, np.int32)), cause="test")
        with set_stream(streams[int(rng.integers(len(streams)))]):
            copy_tensor(second, first, cause="test")
        tensor = second
        del first, second  # while it is still to be read
        live.append((tensor, step))
        if len(live) > 8:
            del live[int(rng.integers(len(live)))]
    for tensor, step in live:
        assert (host(tensor) == step).all()


@pytest.mark.sample(2)
def test_out_of_memory_trims_and_then_says_so(dev: Device) -> None:
    retained = [lb.empty((1 << 24,), dtype="uint8", device=dev) for _ in range(3)]
    with pytest.raises(OutOfMemoryError):
        lb.empty((1 << 25,), dtype="uint8", device=dev)
    del retained
    assert lb.empty((1 << 25,), dtype="uint8", device=dev).nbytes == 1 << 25


def test_any_to_any(dev: Device, api: SimLazyDeviceAPI) -> None:
    there = lb.asarray(VALUES, device=dev)
    other = there.to_device(Device(api, 1))
    shared = lb.empty(VALUES.shape, dtype="float32", device=dev, scope="shared")
    copy_tensor(shared, other, cause="test")
    assert (np.asarray(shared) == VALUES).all()
    assert (host(other) == VALUES).all()
    with lb.ledger() as moves:
        assert (host(shared) == VALUES).all()
    assert moves.total_bytes == VALUES.nbytes
    with pytest.raises(ZeroCopyError):
        lb.asarray(VALUES, device=dev, copy=False)


def test_strided_copies(dev: Device) -> None:
    there = lb.asarray(VALUES, device=dev)
    part = Tensor(there.storage, "float32", (2, 3, 2), there.strides)
    assert (host(part) == VALUES[:, :, :2]).all()
    assert (host(part.copy()) == VALUES[:, :, :2]).all()


def test_copies_on_streams_wait_for_each_other(dev: Device, api: SimLazyDeviceAPI) -> None:
    streams: list[Stream] = [api.create_stream(0) for _ in range(3)]
    chain = lb.asarray(VALUES, device=dev)
    for step in range(9):
        with set_stream(streams[step % 3]):
            chain = chain.copy()
    assert (host(chain) == VALUES).all()
    target = lb.empty(VALUES.shape, dtype="float32", device=dev)
    for step in range(9):
        source = lb.asarray(VALUES + step, device=dev)
        copy_tensor(target, source, cause="test", stream=streams[step % 3])
    assert (host(target) == VALUES + 8).all()


def test_loss(dev: Device, api: SimLazyDeviceAPI) -> None:
    there = lb.asarray(VALUES, device=dev)
    twin = there.copy()
    api.lose(0)
    with pytest.raises(DeviceLostError):
        twin.to_device("cpu")
    del there, twin
    anew = dev.reopen()
    assert (host(lb.asarray(VALUES, device=anew)) == VALUES).all()


@pytest.fixture(scope="module")
def added() -> lb.Executable:
    return lb.compile(add(), "llvm")


def on_shared(executable: lb.Executable) -> lb.Executable:
    return replace(executable, vdevices=(replace(executable.vdevices[0], scope="shared"),))


def test_session_in_shared_memory(added: lb.Executable, dev: Device) -> None:
    s = lb.Session(on_shared(added), device=dev, num_threads=1)
    bias = np.arange(64, dtype=np.float32)
    x = np.ones(64, np.float32)
    s.set_input("x", x)
    x[:] = -5  # by value: the Session has its own
    s.run()
    assert s.get_output(0).device == dev
    assert (np.asarray(s.get_output(0)) == 1 + bias).all()
    borrowed = lb.empty((64,), dtype="float32", device=dev, scope="shared")
    copy_tensor(borrowed, lb.asarray(np.full(64, 3, np.float32), device=dev), cause="test")  # queued
    s.set_input_zero_copy("x", borrowed)
    s.run()
    assert (np.asarray(s.get_output(0)) == 3 + bias).all()
    queued = lb.asarray(np.full(64, 4, np.float32), device=dev)
    copy_tensor(borrowed, queued, cause="test")
    s.run()
    assert (np.asarray(s.get_output(0)) == 4 + bias).all()


def test_session_with_its_data_hidden(dev: Device) -> None:
    executable = lb.compile(
        projection(4, 32, 32), {"npu": "llvm", "host": "llvm"}, place={"*": "host"}, on_mismatch="copy"
    )
    s = lb.Session(executable, devices={"npu": dev, "host": "cpu"}, num_threads=1)
    expected = lb.Session(lb.compile(projection(4, 32, 32), "llvm"), num_threads=1)
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal((4, 32), dtype=np.float32)
        with lb.ledger() as moves:
            s.set_input("x", x)
            retained = x.copy()
            x[:] = np.nan
            s.run()
        assert {"set_input", "to_vdevice"} <= {move.cause for move in moves}
        y = s.get_output(0)
        np.testing.assert_allclose(host(y), np.asarray(expected(retained)[0]), rtol=1e-5, atol=1e-5)
