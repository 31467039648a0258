"""The life of a Storage: whoever looks at the bytes keeps them, and a free says who looks."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import HostViewError, StorageInUseError, UseAfterFreeError
from landbridge.memory.accesses import Access
from landbridge.memory.allocation import allocate
from landbridge.memory.allocators.base import QueuedUse
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.borrowed import borrow_host
from landbridge.memory.storage import Storage
from tests.device.queueing_device import QueuedCopy, QueueingDeviceAPI
from tests.memory.test_accesses import Work


@pytest.fixture
def api() -> QueueingDeviceAPI:
    return QueueingDeviceAPI()


def stored(api: QueueingDeviceAPI, nbytes: int = 512, scope: str = "shared") -> Storage:
    where = Device(api, 0)
    return allocate(where, nbytes, scope=scope, allocator=NaiveAllocator(where, scope))


def test_dropping_the_last_reference_frees(api: QueueingDeviceAPI) -> None:
    storage = stored(api)
    assert len(api.buffers) == 1
    del storage
    assert api.buffers == {}


def test_explicit_free(api: QueueingDeviceAPI) -> None:
    storage = stored(api)
    assert storage.address == api.host_pointer(storage.live_region.space)
    storage.free()
    storage.free()
    assert api.buffers == {}
    for use in (lambda: storage.address, lambda: storage.device, lambda: storage.live_region):
        with pytest.raises(UseAfterFreeError, match="was freed"):
            use()


def test_a_slice_keeps_the_bytes() -> None:
    tensor = lb.empty((64, 64), dtype="float32")
    row = np.asarray(tensor)[3, 1:]
    row[:] = 5
    storage = tensor.storage
    with pytest.raises(StorageInUseError, match=r"in use by numpy array or DLPack capsule over float32\[64, 64\]"):
        storage.free()
    view = memoryview(row)
    del row, tensor
    gc.collect()
    with pytest.raises(StorageInUseError):
        storage.free()
    assert view[0] == 5
    del view
    storage.free()


def test_the_view_outlives_tensor_and_storage() -> None:
    array = np.asarray(lb.empty(4096, dtype="int64"))
    array[:] = 7
    for _ in range(8):
        np.asarray(lb.empty(4096, dtype="int64"))[:] = 0
    assert (array == 7).all()


def test_no_host_address(api: QueueingDeviceAPI) -> None:
    with pytest.raises(HostViewError, match=r"cannot address scope 'global' of queueing:0.*t.to_device"):
        _ = stored(api, scope="global").address


def test_queued_uses_are_waited_for(api: QueueingDeviceAPI) -> None:
    src, dst = stored(api), stored(api)
    writing = QueuedCopy(api, src.live_region, dst.live_region, 8)
    dst.queue(Access(0, 8, True, "copy"), QueuedUse(writing))
    dst.wait(8, 16, writes=True)
    assert not writing.done  # other bytes
    dst.wait(0, 4, writes=False)
    assert writing.done
    reading = QueuedCopy(api, dst.live_region, src.live_region, 8)
    dst.queue(Access(0, 8, False, "copy"), QueuedUse(reading))
    dst.wait(0, 8, writes=False)
    assert not reading.done  # two readers need not wait for each other
    dst.free()
    assert reading.done  # but memory is freed only after its last use


def test_borrowed_bytes_hold_their_owner() -> None:
    array = np.arange(4)
    storage = borrow_host(array.ctypes.data, array.nbytes, array, readonly=True)
    assert (storage.owner is array, storage.readonly, storage.kind.alignment) == (True, True, 1)
    storage.free()
    assert storage.owner is None
    assert array.tolist() == [0, 1, 2, 3]


def test_what_was_borrowed_is_released_when_queued_work_is_done() -> None:
    """Its owner may free the bytes at once."""

    class Owner:
        def __del__(self) -> None:
            ends.append(work.waited)

    ends: list[bool] = []
    work = Work(over=False)
    array = np.zeros(64, np.uint8)
    storage = borrow_host(array.ctypes.data, array.nbytes, Owner(), readonly=False)
    storage.queue(Access(0, 64, True, "a test"), QueuedUse(work, None))
    assert not ends
    del storage
    gc.collect()
    assert ends == [True]
