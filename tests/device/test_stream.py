"""The current device and stream belong to a thread and are restored."""

from __future__ import annotations

from threading import Thread

import pytest

from landbridge.device.api import Device, Stream
from landbridge.device.registry import device
from landbridge.device.stream import current_device, current_stream, set_device, set_stream
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
