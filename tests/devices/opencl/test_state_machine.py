"""Any order of allocations, views, copies, launches, recordings and imports, against arrays of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

import landbridge as lb
from landbridge.device.api import Device, Region
from landbridge.errors import ZeroCopyError

from .test_modules import SOURCE
from .transfers import read, region

ITEMS = 256  # elements of every buffer: 1024 bytes
WORDS = st.integers(0, ITEMS - 1)


class DeviceAgainstNumpy(RuleBasedStateMachine):
    """Each buffer is a tensor of the device and the array it should equal; small integers, so that nothing rounds."""

    device: Device
    module: object
    buffers = Bundle("buffers")
    recordings = Bundle("recordings")

    def __init__(self) -> None:
        super().__init__()
        self.api, self.index = self.device.api, self.device.index
        self.streams = [None, self.api.create_stream(self.index)]
        self.live: list[list[Any]] = []

    def buffer(self, tensor: lb.Tensor, values: np.ndarray) -> list[Any]:
        self.live.append([tensor, values])
        return self.live[-1]

    @rule(target=buffers, scope=st.sampled_from(["global", "global.svm"]), seed=st.integers(0, 9))
    def allocate(self, scope: str, seed: int) -> list[Any]:
        scope = scope if scope in self.device.memory_kinds else "global"
        tensor = lb.empty((ITEMS,), dtype="float32", device=self.device, scope=scope)
        values = np.random.default_rng(seed).integers(0, 4, ITEMS).astype(np.float32)
        with tensor.host_view("w") as array:
            array[:] = values
        return self.buffer(tensor, values)

    @rule(target=buffers, seed=st.integers(0, 9))
    def borrow(self, seed: int) -> list[Any]:
        array = np.random.default_rng(seed).integers(0, 4, ITEMS).astype(np.float32)
        try:
            tensor = lb.asarray(array, device=self.device, copy=False)
        except ZeroCopyError:
            tensor = lb.asarray(array, device=self.device, copy=True)
        return self.buffer(tensor, array.copy())

    @rule(gone=consumes(buffers))
    def free(self, gone: list[Any]) -> None:
        self.live = [known for known in self.live if known is not gone]
        gone[0].storage.free()
        gone.clear()

    @rule(one=buffers, first=WORDS, count=WORDS, value=st.integers(0, 3))
    def write_a_part(self, one: list[Any], first: int, count: int, value: int) -> None:
        with one[0].host_view("rw") as array:
            array[first : first + count] = value
        one[1][first : first + count] = value

    @rule(one=buffers, other=buffers, start=WORDS, stop=WORDS, count=WORDS, stream=st.integers(0, 1))
    def copy(self, one: list[Any], other: list[Any], start: int, stop: int, count: int, stream: int) -> None:
        count = min(count, ITEMS - max(start, stop))
        if one is other or count < 1:
            return
        source, target = region(one[0]), region(other[0])
        event = self.api.copy_data_from_to(
            Region(source.space, source.byte_offset + 4 * start),
            Region(target.space, target.byte_offset + 4 * stop),
            4 * count,
            self.streams[stream],
            None,
        )
        event.synchronize()
        other[1][stop : stop + count] = one[1][start : start + count]

    @rule(one=buffers, count=WORDS, stream=st.integers(0, 1))
    def double(self, one: list[Any], count: int, stream: int) -> None:
        args = (region(one[0]), 2.0, count)
        event = self.api.launch(self.module, "scale", (4, 1, 1), (64, 1, 1), args, self.streams[stream])
        if stream:  # nothing else orders it with what the next rule queues
            event.synchronize()
        one[1][:count] = one[1][:count] * 2 % 2**20
        self.reduce(one)

    def reduce(self, one: list[Any]) -> None:
        """Keep numbers small."""
        if one[1].max() > 2**16:
            with one[0].host_view("w") as array:
                array[:] = 1
            one[1][:] = 1

    @rule(target=recordings, one=buffers, other=buffers)
    def record(self, one: list[Any], other: list[Any]) -> list[Any]:
        """``other += one``, then a copy of the first half of ``other`` to ``one``, when the two are apart."""
        if one is other:
            other = self.allocate("global", 1)
        regions = [region(known[0]) for known in (other, one)]
        self.api.begin_record(self.index, None)
        self.api.launch(self.module, "add", (4, 1, 1), (64, 1, 1), (*regions, regions[0]), None)
        self.api.copy_data_from_to(regions[0], regions[1], 2 * ITEMS, None, None)
        return [self.api.end_record(self.index, None)]

    @rule(recording=recordings, one=buffers, other=buffers)
    def replay(self, recording: list[Any], one: list[Any], other: list[Any]) -> None:
        if one is other:
            return
        bound = {0: region(other[0]), 1: region(one[0])}
        self.api.replay(recording[0], bound, None).synchronize()
        other[1] += one[1]
        one[1][: ITEMS // 2] = other[1][: ITEMS // 2]
        self.reduce(other)
        self.reduce(one)

    @invariant()
    def everything_is_as_numpy_has_it(self) -> None:
        for tensor, values in self.live:
            assert np.array_equal(read(tensor), values)

    def teardown(self) -> None:
        self.live.clear()
        self.api.free_stream(self.streams[1])


def test_device_against_numpy(device: Device) -> None:
    if device.memory_kind().host_access == "none":
        pytest.skip(f"{device} has memory of its own")
    DeviceAgainstNumpy.device = device
    DeviceAgainstNumpy.module = device.api.load_module(device.index, SOURCE, "opencl-c")
    case = DeviceAgainstNumpy.TestCase()
    case.settings = settings(max_examples=25, stateful_step_count=30)
    case.runTest()
