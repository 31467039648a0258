"""Copies between devices: by the device that can, through host views, or staged; always in the ledger."""

from __future__ import annotations

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.device import Device
from landbridge.errors import CopyForbiddenError, InputError
from landbridge.memory.transfer import copy_tensor
from landbridge.tensor import Tensor
from tests.device.queueing_device import QueueingDeviceAPI

VALUES = np.arange(24, dtype=np.int16).reshape(2, 3, 4)


@pytest.fixture
def npu() -> Device:
    return Device(QueueingDeviceAPI(), 0)


def test_there_and_back(npu: Device) -> None:
    with lb.ledger() as moves:
        there = lb.asarray(VALUES, device=npu)
        back = there.to_device("cpu")
        assert back.to_device("cpu:0") is back
    np.testing.assert_array_equal(np.asarray(back), VALUES)
    assert [(m.nbytes, m.cause, m.source, m.destination) for m in moves] == [
        (48, "asarray", "cpu:0", "queueing:0"),
        (48, "to_device", "queueing:0", "cpu:0"),
    ]


def test_a_by_value_source_may_be_overwritten(npu: Device) -> None:
    source = VALUES.copy()
    there = lb.asarray(source, device=npu)
    source[:] = -1
    np.testing.assert_array_equal(np.asarray(there.to_device("cpu")), VALUES)


def test_a_queued_copy_keeps_its_source_alive(npu: Device) -> None:
    there = lb.asarray(VALUES, device=npu)
    twin = there.copy()
    del there
    np.testing.assert_array_equal(np.asarray(twin.to_device("cpu")), VALUES)


def test_strided_copies_are_one_for_each_dense_run(npu: Device) -> None:
    there = lb.asarray(VALUES, device=npu)
    part = Tensor(there.storage, "int16", (2, 3, 2), there.strides, byte_offset=2)
    back = lb.empty((2, 3, 2), dtype="int16")
    before = npu.api.copies  # type: ignore[attr-defined]
    copy_tensor(back, part, cause="test")
    assert npu.api.copies - before == 6  # type: ignore[attr-defined]
    np.testing.assert_array_equal(np.asarray(back), VALUES[:, :, 1:3])
    rows = Tensor(there.storage, "int16", (2, 2, 4), there.strides)
    target = lb.empty((2, 2, 4), dtype="int16")
    copy_tensor(target, rows, cause="test")
    assert npu.api.copies - before == 8  # type: ignore[attr-defined]
    np.testing.assert_array_equal(np.asarray(target), VALUES[:, :2])


def test_through_host_views(npu: Device) -> None:
    shared = lb.empty(VALUES.shape, dtype="int16", device=npu, scope="shared")
    copy_tensor(shared, lb.asarray(VALUES), cause="test")
    assert [barrier[0] for barrier in npu.api.barriers] == ["begin", "end"]  # type: ignore[attr-defined]
    with shared.host_view("r") as a:
        np.testing.assert_array_equal(a, VALUES)


def test_staged_between_devices_that_cannot_reach_each_other(npu: Device) -> None:
    other = Device(QueueingDeviceAPI(), 0)
    there = lb.asarray(VALUES, device=npu)
    with lb.ledger() as moves:
        far = there.to_device(other)
    assert [(m.cause, m.source, m.destination) for m in moves] == [
        ("to_device:staged", "queueing:0", "cpu:0"),
        ("to_device:staged", "cpu:0", "queueing:0"),
    ]
    np.testing.assert_array_equal(np.asarray(far.to_device("cpu")), VALUES)


def test_no_way_at_all() -> None:
    class Island(QueueingDeviceAPI):
        can_copy = None  # type: ignore[assignment]

    with pytest.raises(InputError, match="neither cpu:0 nor queueing:0 can copy between them"):
        lb.asarray(VALUES, device=Device(Island(), 0))


def test_no_copies(npu: Device) -> None:
    there = lb.asarray(VALUES, device=npu)
    before = npu.api.copies  # type: ignore[attr-defined]
    with lb.no_copies(), pytest.raises(CopyForbiddenError, match="from queueing:0 to cpu:0"):
        there.to_device("cpu")
    assert npu.api.copies == before  # type: ignore[attr-defined]


def test_refusals(npu: Device) -> None:
    tensor = lb.empty(8, dtype="int16", device=npu)
    front, shifted = (Tensor(tensor.storage, "int16", (4,), byte_offset=offset) for offset in (0, 4))
    with pytest.raises(InputError, match="overlap"):
        copy_tensor(shifted, front, cause="test")
    with pytest.raises(InputError, match="shape and dtype"):
        copy_tensor(tensor, front, cause="test")
    frozen = lb.asarray(np.frombuffer(bytes(16), np.int16))
    with pytest.raises(InputError, match="read-only"):
        copy_tensor(frozen, tensor, cause="test")
