"""Copies between devices: by the device that can, through host views, or staged; always in the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Event
from landbridge.errors import CopyForbiddenError, InputError
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from tests.device.queueing_device import QueueingDeviceAPI

VALUES = np.arange(24, dtype=np.int16).reshape(2, 3, 4)


class CountingSimLazy(SimLazyDeviceAPI):
    """Knows how many copies it was asked for."""

    copies = 0

    def copy_data_from_to(self, *args: Any, **kwargs: Any) -> Event | None:
        self.copies += 1
        return super().copy_data_from_to(*args, **kwargs)


APIS = {"queueing": QueueingDeviceAPI, "sim:lazy": CountingSimLazy}


@pytest.fixture(params=APIS)
def npu(request: pytest.FixtureRequest) -> Iterator[Device]:
    api = APIS[request.param]()
    yield Device(api, 0)
    assert not getattr(api, "violations", [])


def test_there_and_back(npu: Device) -> None:
    with lb.ledger() as moves:
        there = lb.asarray(VALUES, device=npu)
        back = there.to_device("cpu")
        assert back.to_device("cpu:0") is back
    np.testing.assert_array_equal(np.asarray(back), VALUES)
    assert [(m.nbytes, m.cause, m.source, m.destination) for m in moves] == [
        (48, "asarray", "cpu:0", str(npu)),
        (48, "to_device", str(npu), "cpu:0"),
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
    first = 1 if npu.memory_kind().offset_alignment == 1 else 0
    part = Tensor(there.storage, "int16", (2, 3, 2), there.strides, byte_offset=2 * first)
    back = lb.empty((2, 3, 2), dtype="int16")
    before = npu.api.copies  # type: ignore[attr-defined]
    copy_tensor(back, part, cause="test")
    assert npu.api.copies - before == 6  # type: ignore[attr-defined]
    np.testing.assert_array_equal(np.asarray(back), VALUES[:, :, first : first + 2])
    rows = Tensor(there.storage, "int16", (2, 2, 4), there.strides)
    target = lb.empty((2, 2, 4), dtype="int16")
    copy_tensor(target, rows, cause="test")
    assert npu.api.copies - before == 8  # type: ignore[attr-defined]
    np.testing.assert_array_equal(np.asarray(target), VALUES[:, :2])


def test_through_host_views(npu: Device) -> None:
    shared = lb.empty(VALUES.shape, dtype="int16", device=npu, scope="shared")
    copy_tensor(shared, lb.asarray(VALUES), cause="test")
    if isinstance(npu.api, QueueingDeviceAPI):
        # Its engine goes round the host's cache, of which the lines of fresh memory are cleaned, once.
        assert [barrier[0] for barrier in npu.api.barriers] == ["end"]
        npu.api.barriers.clear()
        copy_tensor(shared, lb.asarray(VALUES), cause="test")
        assert npu.api.barriers == []
        npu.api.can_copy = lambda src, dst: False  # type: ignore[method-assign]
        copy_tensor(shared, lb.asarray(VALUES), cause="test")
        assert [barrier[0] for barrier in npu.api.barriers] == ["begin", "end"]
    with shared.host_view("r") as a:
        np.testing.assert_array_equal(a, VALUES)


def test_staged_between_devices_that_cannot_reach_each_other(npu: Device) -> None:
    other = Device(type(npu.api)(), 0)
    there = lb.asarray(VALUES, device=npu)
    with lb.ledger() as moves:
        far = there.to_device(other)
    assert [(m.cause, m.source, m.destination) for m in moves] == [
        ("to_device:staged", str(npu), "cpu:0"),
        ("to_device:staged", "cpu:0", str(npu)),
    ]
    np.testing.assert_array_equal(np.asarray(far.to_device("cpu")), VALUES)


@pytest.mark.parametrize("base", APIS.values(), ids=APIS)
def test_no_way_at_all(base: type[QueueingDeviceAPI]) -> None:
    class Island(base):  # type: ignore[misc, valid-type]
        can_copy = None

    with pytest.raises(InputError, match=f"neither cpu:0 nor {base.name}:0 can copy between them"):
        lb.asarray(VALUES, device=Device(Island(), 0))


def test_no_copies(npu: Device) -> None:
    there = lb.asarray(VALUES, device=npu)
    before = npu.api.copies  # type: ignore[attr-defined]
    with lb.no_copies(), pytest.raises(CopyForbiddenError, match=f"from {npu} to cpu:0"):
        there.to_device("cpu")
    assert npu.api.copies == before  # type: ignore[attr-defined]


def test_refusals(npu: Device) -> None:
    tensor = lb.empty(96, dtype="int16", device=npu)
    front, shifted = (Tensor(tensor.storage, "int16", (64,), byte_offset=offset) for offset in (0, 64))
    with pytest.raises(InputError, match="overlap"):
        copy_tensor(shifted, front, cause="test")
    with pytest.raises(InputError, match="shape and dtype"):
        copy_tensor(tensor, front, cause="test")
    frozen = lb.asarray(np.frombuffer(bytes(192), np.int16))
    with pytest.raises(InputError, match="read-only"):
        copy_tensor(frozen, tensor, cause="test")
