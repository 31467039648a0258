"""The current device and stream belong to a thread and are restored."""

from __future__ import annotations

from threading import Thread
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Region, Stream
from landbridge.device.registry import device
from landbridge.device.stream import current_device, current_stream, set_device, set_stream
from landbridge.errors import InputError, UnsupportedError
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from tests.device.queueing_device import QueueingDeviceAPI


def test_current_device_is_restored() -> None:
    other = Device(QueueingDeviceAPI(), 1)
    assert current_device() == device("cpu")
    with pytest.raises(RuntimeError, match="inside"), set_device(other):
        assert current_device() is other
        seen: list[Device] = []
        thread = Thread(target=lambda: seen.append(current_device()))
        thread.start()
        thread.join()
        assert seen == [device("cpu")]
        raise RuntimeError("inside")
    assert current_device() == device("cpu")


def test_current_stream_is_per_device() -> None:
    first, second = (Device(QueueingDeviceAPI(), index) for index in (0, 1))
    assert current_stream(first) is None
    outer, inner = Stream(first, "outer"), Stream(first, "inner")
    with set_stream(outer):
        with set_stream(inner):
            assert current_stream(first) is inner
            assert current_stream(second) is None
        assert current_stream(first) is outer
    assert current_stream(first) is None


def _copies(on: list[Stream | None], found: Device) -> tuple[list[lb.Tensor], np.ndarray[Any, Any]]:
    """A chain of copies, one on each of ``on``, each from where the one before went; it ends in the last Tensor."""
    values = np.arange(64, dtype=np.uint8)
    chain = [lb.asarray(values, device=found), *(lb.empty((64,), dtype="uint8", device=found) for _ in on)]
    for number, stream in enumerate(on):
        source, target = (Region(tensor.storage.live_region.space) for tensor in chain[number : number + 2])
        found.api.copy_data_from_to(source, target, 64, stream, None)
        if number + 1 < len(on) and (after := on[number + 1]) is not None:
            after.wait_for(stream)
    return chain, values


@pytest.mark.parametrize("seed", range(8))
def test_streams_wait_for_each_other(seed: int) -> None:
    found = Device(SimLazyDeviceAPI(seed), 0)
    first, second = found.create_stream(), found.create_stream()
    chain, values = _copies([None, first, second, first], found)
    first.synchronize()
    assert np.asarray(chain[-1].to_device("cpu")).tolist() == values.tolist()


@pytest.mark.parametrize("seed", range(8))
def test_a_stream_waits_for_an_event(seed: int) -> None:
    found = Device(SimLazyDeviceAPI(seed), 0)
    first, second = found.create_stream(), found.create_stream()
    (_, target), values = _copies([first], found)
    begun, last = first.record(), lb.empty((64,), dtype="uint8", device=found)
    second.wait_for(begun)
    ends = [Region(tensor.storage.live_region.space) for tensor in (target, last)]
    found.api.copy_data_from_to(*ends, 64, second, None)
    end = second.record()
    assert end.synchronize() and np.asarray(last.to_device("cpu")).tolist() == values.tolist()
    assert (found.elapsed_ms(begun, end) or 0.0) >= 0.0


def test_who_cannot_wait_says_so() -> None:
    first, second = (Device(api, 0) for api in (SimLazyDeviceAPI(0), SimLazyDeviceAPI(0)))
    stream = first.create_stream()
    with pytest.raises(InputError, match=r"cannot wait for one of sim:lazy:0; synchronize\(\) that one first"):
        stream.wait_for(second.create_stream())
    plain = Device(QueueingDeviceAPI(), 0)
    with pytest.raises(UnsupportedError, match="records no events"):
        Stream(plain, "queue").record()
    with pytest.raises(UnsupportedError, match="give a stream"):
        Stream(plain, "queue").wait_for(None)
    assert plain.elapsed_ms(stream.record(), stream.record()) is None
