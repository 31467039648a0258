"""What the runtime refuses before any device sees it, and what is left when memory runs out: nothing."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import landbridge as lb
from landbridge.device.api import Device
from landbridge.device.registry import device
from landbridge.errors import InputError, OutOfMemoryError, UseAfterFreeError
from landbridge.memory.allocation import allocate
from landbridge.memory.allocators.base import NdSize
from landbridge.memory.allocators.failure_callback import FailureCallbackAllocator
from landbridge.memory.allocators.limiting import LimitingAllocator
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.pooled import PooledAllocator
from landbridge.memory.allocators.statistics import StatisticsAllocator
from landbridge.memory.ledger import copy_array
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from tests.memory.allocator_model import ModelDeviceAPI
from tests.vm import programs
from tests.whole_models.small_models import add

CPU = device("cpu")


@pytest.fixture
def lazy() -> Iterator[Device]:
    api = SimLazyDeviceAPI(0)
    yield Device(api, 0)
    assert api.violations == []


class TestSizes:
    @pytest.mark.parametrize(
        "shape", [(-1,), (4, -4), (1 << 62,), (1 << 40, 1 << 40), (0, 1 << 63), (1 << 200,), (3, -(1 << 70))]
    )
    @pytest.mark.parametrize("where", ["cpu", "lazy"])
    def test_tensors(self, shape: tuple[int, ...], where: str, lazy: Device) -> None:
        with pytest.raises(InputError, match=r"negative extent|more bytes than any device can address|at most"):
            lb.empty(shape, dtype="float32", device=CPU if where == "cpu" else lazy)

    @pytest.mark.parametrize("nbytes", [-1, (1 << 62) + 1, 1 << 64])
    def test_storages(self, nbytes: int) -> None:
        with pytest.raises(InputError, match=rf"{nbytes} bytes of scope 'global' of cpu:0 requested; legal: 0 to"):
            allocate(CPU, nbytes)

    @pytest.mark.parametrize("shape", [(-1, 4), (1 << 61, 4)])
    def test_spaces_of_rows(self, shape: tuple[int, ...]) -> None:
        with pytest.raises(InputError, match=r"negative extent|more bytes"):
            NdSize(shape, "float32")

    @pytest.mark.parametrize("alignment", [0, -64, 3, 96])
    def test_alignments(self, alignment: int) -> None:
        with pytest.raises(InputError, match="give a power of two"):
            allocate(CPU, 64, alignment=alignment)
        with pytest.raises(InputError, match="give a power of two"):
            lb.empty(64, dtype="int8", alignment=alignment)

    @given(st.lists(st.integers(-(1 << 66), 1 << 66), max_size=4), st.sampled_from(["int8", "float64", "bfloat16"]))
    def test_any_shape_is_allocated_or_refused(self, shape: list[int], dtype: str) -> None:
        api = ModelDeviceAPI(1 << 64)  # it has room for any size, but no memory
        try:
            tensor = lb.empty(shape, dtype=dtype, device=Device(api, 0))
        except InputError:
            assert min(shape) < 0 or math.prod(max(extent, 1) for extent in shape) > 1 << 58
            return
        assert tensor.shape == tuple(shape)
        assert api.used_bytes >= tensor.nbytes >= math.prod(shape)


class TestCopies:
    @pytest.mark.parametrize("where", ["cpu", "lazy"])
    @pytest.mark.parametrize(("shape", "dtype"), [((4, 6), "float32"), ((24,), "float32"), ((6, 4), "int32")])
    def test_another_shape_or_dtype(self, shape: tuple[int, ...], dtype: str, where: str, lazy: Device) -> None:
        at = CPU if where == "cpu" else lazy
        source = lb.asarray(np.zeros((6, 4), np.float32), device=at)
        target = lb.empty(shape, dtype=dtype, device=at)
        with lb.ledger() as moves, pytest.raises(InputError, match="give a destination of its shape and dtype"):
            copy_tensor(target, source, cause="test")
        assert len(moves) == 0

    @pytest.mark.parametrize(("shape", "dtype"), [((3,), "f4"), ((4, 1), "f4"), ((4,), "i4")])
    def test_of_arrays(self, shape: tuple[int, ...], dtype: str) -> None:
        with pytest.raises(InputError, match=r"must be equal|never cast"):
            copy_array(
                np.zeros(shape, dtype), np.zeros(4, "f4"), cause="test", tensor="t", source="cpu", destination="cpu"
            )

    @settings(max_examples=60)
    @given(st.data())
    def test_strides(self, data: st.DataObject) -> None:
        """Any sub-tensor of a device, and of the host, arrives as numpy says."""
        shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
        values = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
        host = data.draw(st.booleans())
        first = 1 if host else 0  # tensors of the device start at multiples of 64 bytes
        axes = data.draw(st.permutations(range(len(shape))))
        window = tuple(
            slice(start := data.draw(st.integers(0, first and extent - 1)), data.draw(st.integers(start, extent)), step)
            for extent, step in ((extent, data.draw(st.integers(1, 3))) for extent in shape)
        )
        expected = values[window].transpose(axes)
        whole = lb.asarray(values, device=CPU if host else Device(SimLazyDeviceAPI(0), 0), copy=True)
        offset = sum(w.start * stride for w, stride in zip(window, values.strides, strict=True)) if expected.size else 0
        strides = tuple(stride // 4 for stride in expected.strides)
        part = Tensor(whole.storage, "int32", expected.shape, strides, offset)
        np.testing.assert_array_equal(np.asarray(part.copy().to_device("cpu")), expected)
        target = lb.empty(expected.shape, dtype="int32", device=whole.device)
        copy_tensor(target, part, cause="test")
        np.testing.assert_array_equal(np.asarray(target.to_device("cpu")), expected)


USES: dict[str, Callable[[Tensor], Any]] = {
    "copy": lambda t: t.copy(),
    "address": lambda t: t.data_address,
    "view": lambda t: t.host_view("r").__enter__(),
    "numpy": np.asarray,
    "dlpack": lambda t: t.__dlpack__(),
    "source": lambda t: copy_tensor(lb.empty(t.shape, dtype=t.dtype), t, cause="test"),
    "destination": lambda t: copy_tensor(t, lb.empty(t.shape, dtype=t.dtype), cause="test"),
    "storage": lambda t: t.storage.live_region,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("allocator", ["pooled", "naive"])
def test_use_after_free(use: str, allocator: str) -> None:
    base = NaiveAllocator(CPU)
    tensor = lb.empty(16, dtype="int8", allocator=PooledAllocator(base) if allocator == "pooled" else base)
    tensor.storage.free()
    with pytest.raises(UseAfterFreeError):
        USES[use](tensor)
    tensor.storage.free()  # twice is once


def test_a_freed_tensor_is_no_input() -> None:
    session = lb.Session(lb.compile(add()), num_threads=1)
    freed = lb.empty(64, dtype="float32")
    freed.storage.free()
    for bind in (session.set_input_zero_copy, session.set_input):
        with pytest.raises(UseAfterFreeError):
            bind("x", freed)


class TestOutOfMemory:
    def test_the_message_has_what_helps(self) -> None:
        pool = PooledAllocator(NaiveAllocator(CPU), cap=8 << 20)
        retained = [lb.empty(n << 20, dtype="int8", allocator=pool) for n in (1, 3, 2)]
        del retained[0]
        with pytest.raises(OutOfMemoryError) as caught:
            lb.empty(6 << 20, dtype="int8", allocator=pool)
        message = str(caught.value)
        for fact in (
            "cpu:0 global: 6291456 bytes requested",
            "5242880 used, ",
            " free, the largest hole ",
            "unused bytes of its pools were given back first",
            "3145728 bytes by Tensor(int8[3145728], cpu:0)",
            "free tensors or ask for less",
        ):
            assert fact in message, message

    def test_one_retry_after_a_trim(self, lazy: Device) -> None:
        requested: list[int] = []
        counted = StatisticsAllocator(NaiveAllocator(lazy, "shared"))
        never = FailureCallbackAllocator(
            LimitingAllocator(counted, 100), lambda nbytes: requested.append(nbytes) or False
        )
        with pytest.raises(OutOfMemoryError, match="200 bytes requested, 67108864 free on the device by its own count"):
            lb.empty(200, dtype="int8", device=lazy, scope="shared", allocator=never)
        assert requested == [200, 200]
        assert counted.counters.total_count == 0

    def test_every_pool_of_the_device_gives_back(self, lazy: Device) -> None:
        pools = [PooledAllocator(NaiveAllocator(lazy, scope)) for scope in ("global", "shared")]
        for pool in pools:
            pool.deallocate(pool.allocate(20 << 20, 256))
        whole = lb.empty(64 << 20, dtype="int8", device=lazy, allocator=NaiveAllocator(lazy))
        assert [pool.reserved_bytes for pool in pools] == [0, 0]
        assert whole.nbytes == 64 << 20

    def test_a_session_that_does_not_fit_takes_nothing(self) -> None:
        counted = StatisticsAllocator(NaiveAllocator(CPU))
        cfg = {("cpu:0", "global"): LimitingAllocator(counted, 63)}
        with pytest.raises(OutOfMemoryError):
            lb.Session(programs.branches(), memory_cfg=cfg, num_threads=1)
        gc.collect()
        assert counted.counters.current_bytes == 0

    def test_outputs_get_memory_all_or_none(self) -> None:
        counted = StatisticsAllocator(NaiveAllocator(CPU))
        limited = LimitingAllocator(counted, 64 + 64)  # the program's own, and one of two outputs
        session = lb.Session(programs.branches(), memory_cfg={("cpu:0", "global"): limited}, num_threads=1)
        session.set_input_zero_copy("x", np.ones(8, np.float32))
        session.set_input_zero_copy("c", np.ones(1, np.float32))
        with pytest.raises(OutOfMemoryError, match="128 of the limit of 128 bytes are in use"):
            session.run()
        assert counted.counters.current_bytes == 64
        limited.limit += 64
        session.run()  # as if nothing had happened
        assert np.asarray(session.get_output("z")).tolist() == [4.0] * 8
        assert counted.counters.peak_bytes == session.planned_memory[0].planned_bytes == 192
        del session
        gc.collect()
        assert counted.counters.current_bytes == 0
