"""Coherence: the barriers placed around host access, judged by a model of two caches that only they connect."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import HostAccessError
from landbridge.memory.byte_ranges import ByteRanges
from landbridge.tensor import Tensor, copy
from tests.device.queueing_device import QueueingDeviceAPI

SPANS = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda pair: tuple(sorted(pair)))


@given(st.lists(st.tuples(st.booleans(), SPANS)), SPANS)
def test_byte_ranges_are_a_set(steps: list[tuple[bool, tuple[int, int]]], requested: tuple[int, int]) -> None:
    ranges, model = ByteRanges(), set()
    for adds, (start, stop) in steps:
        (ranges.add if adds else ranges.remove)(start, stop)
        model = model | set(range(start, stop)) if adds else model - set(range(start, stop))
    found = ranges.within(*requested)
    assert {b for start, stop in found for b in range(start, stop)} == model & set(range(*requested))
    assert all(a[1] < b[0] for a, b in pairwise(found))
    assert bool(ranges) == bool(model)


@pytest.fixture
def api() -> QueueingDeviceAPI:
    return QueueingDeviceAPI()


def shared(api: QueueingDeviceAPI, nbytes: int = 256) -> Tensor:
    tensor = lb.empty(nbytes, dtype="uint8", device=Device(api, 0), scope="shared")
    with tensor.host_view("w") as a:
        a[:] = 0
    return tensor


def device_bytes(tensor: Tensor) -> bytes:
    region = tensor.storage.live_region
    buffers = region.space.device.api.buffers  # type: ignore[attr-defined]
    return buffers[region.space.handle].raw[region.byte_offset : region.byte_offset + tensor.storage.nbytes]


def part(tensor: Tensor, start: int, stop: int) -> Tensor:
    return Tensor(tensor.storage, "uint8", (stop - start,), byte_offset=start)


def device_write(api: QueueingDeviceAPI, tensor: Tensor, value: int) -> None:
    hidden = lb.asarray(np.full(tensor.shape, value, np.uint8), device=Device(api, 0))
    copy._copy_by(Device(api, 0), tensor, hidden, "test", None)


@pytest.mark.parametrize(("start", "stop"), [(10, 20), (1, 64), (64, 127), (0, 255), (1, 256)])
def test_a_partial_w_keeps_its_neighbours(api: QueueingDeviceAPI, start: int, stop: int) -> None:
    """A single byte of a granule of 64, too, at either end."""
    tensor = shared(api)
    device_write(api, tensor, 9)
    with part(tensor, start, stop).host_view("w") as a:
        a[:] = 1
    tensor.storage.wait(0, 256, writes=False)
    assert device_bytes(tensor) == b"\x09" * start + b"\1" * (stop - start) + b"\x09" * (256 - stop)


def test_two_views_in_one_granule(api: QueueingDeviceAPI) -> None:
    tensor = shared(api)
    with part(tensor, 0, 8).host_view("w") as a:
        a[:] = 1
        with part(tensor, 8, 16).host_view("w") as b:
            b[:] = 2
            a[0] = 3
        a[1] = 4
    assert device_bytes(tensor)[:17] == b"\3\4" + b"\1" * 6 + b"\2" * 8 + b"\0"


def test_host_writes_are_flushed_before_the_device_reads(api: QueueingDeviceAPI) -> None:
    tensor, twin = shared(api), lb.empty(8, dtype="uint8", device=Device(api, 0))
    with part(tensor, 64, 72).host_view("w") as a:
        a[:] = 5
        # other bytes of the same granule: no conflict of bytes, but the granule must be there
        copy._copy_by(Device(api, 0), twin, part(tensor, 72, 80), "test", None)
        assert device_bytes(tensor)[64:72] == b"\5" * 8


def test_both_sides_dirty_is_an_error(api: QueueingDeviceAPI) -> None:
    tensor = shared(api)
    view = part(tensor, 0, 8).host_view("w")
    view.__enter__()[:] = 1
    device_write(api, part(tensor, 8, 16), 7)
    with pytest.raises(HostAccessError, match=r"host and device both wrote bytes 0 to 64.*granules are 64 bytes"):
        view.__exit__(None, None, None)
    tensor.storage.wait(0, 256, writes=False)
    assert device_bytes(tensor)[8:16] == b"\7" * 8  # the device's are not overwritten
    with tensor.host_view("r") as a:  # and the tensor is usable again
        assert a[8] == 7


def test_a_lasting_view_must_invalidate_before_it_writes(api: QueueingDeviceAPI) -> None:
    tensor = shared(api)
    view = tensor.host_view("rw")
    host = np.asarray(view.tensor)
    view.invalidate()
    host[0] = 1
    view.flush()
    device_write(api, tensor, 6)
    host[1] = 2
    with pytest.raises(HostAccessError, match="call invalidate"):
        view.flush()
    view.invalidate()
    assert host.tolist() == [6] * 256
    host[1] = 2
    view.flush()
    assert device_bytes(tensor)[:3] == b"\6\2\6"


def test_coherent_memory_has_no_state() -> None:
    tensor = lb.empty(8, dtype="uint8")
    assert tensor.storage.domain is None
    with tensor.host_view("w") as a:
        a[:] = 1
    copy.copy_tensor(lb.empty(8, dtype="uint8"), tensor, cause="test")


STEPS = st.lists(
    st.tuples(st.sampled_from(["r", "w", "rw", "device"]), SPANS.filter(lambda s: s[0] < s[1]), st.integers(1, 255)),
    max_size=12,
)


@given(STEPS)
def test_any_order_of_accesses_sees_the_newest_bytes(steps: list[tuple[str, tuple[int, int], int]]) -> None:
    api = QueueingDeviceAPI()
    tensor, model = shared(api), bytearray(256)
    for who, (start, stop), value in steps:
        start, stop = start * 6, stop * 6
        where = part(tensor, start, stop)
        if who == "device":
            device_write(api, where, value)
            model[start:stop] = bytes([value]) * (stop - start)
            continue
        with where.host_view(who) as a:  # type: ignore[arg-type]
            if who != "w":
                assert a.tobytes() == model[start:stop]
            if who != "r":
                a[:] = value
                model[start:stop] = bytes([value]) * (stop - start)
    with tensor.host_view("r") as a:
        assert a.tobytes() == model
