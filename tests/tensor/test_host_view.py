"""Host views: barriers where memory is not coherent, conflicts, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import HostAccessError, HostViewError, StorageInUseError, UseAfterFreeError
from landbridge.memory.accesses import any_view_open
from landbridge.memory.coherence import before_device_access
from landbridge.tensor import Tensor
from tests.device.queueing_device import QueueingDeviceAPI


@pytest.fixture
def api() -> QueueingDeviceAPI:
    return QueueingDeviceAPI()


def shared(api: QueueingDeviceAPI, shape: tuple[int, ...] = (100,)) -> Tensor:
    """Memory that the device has used before, so that no line of it is left in a cache from when it was made."""
    tensor = lb.empty(shape, dtype="uint8", device=Device(api, 0), scope="shared")
    before_device_access(tensor.storage, 0, tensor.nbytes, writes=False)
    api.barriers.clear()
    return tensor


def test_view_of_host_memory_is_the_memory() -> None:
    tensor = lb.empty((2, 3), dtype="float32")
    with tensor.host_view("w") as a:
        assert a.ctypes.data == tensor.data_address
        a[:] = [[1, 2, 3], [4, 5, 6]]
    with tensor.host_view("r") as b:
        assert b.tolist() == [[1, 2, 3], [4, 5, 6]]
        with pytest.raises(ValueError, match="read-only"):
            b[0] = 0
    with tensor.host_view() as c:
        assert c.flags.writeable


def test_barriers_bring_both_sides_up_to_date(api: QueueingDeviceAPI) -> None:
    tensor = shared(api)
    space = tensor.storage.live_region.space
    with tensor.host_view("w") as a:
        a[:] = 7
        assert api.buffers[space.handle].raw[:100] != b"\7" * 100  # not before the end of the view
    assert api.buffers[space.handle].raw[:100] == b"\7" * 100
    api.buffers[space.handle][0:100] = b"\x09" * 100  # the device writes
    with tensor.host_view("r") as a:
        assert a.tolist() == [9] * 100
    with tensor.host_view("rw") as a:
        a[50] = 1
    assert api.buffers[space.handle].raw[:100] == b"\x09" * 50 + b"\1" + b"\x09" * 49


def test_barriers_are_rounded_outwards(api: QueueingDeviceAPI) -> None:
    tensor = shared(api, (256,))
    part = Tensor(tensor.storage, "uint8", (10,), byte_offset=60)
    base = tensor.storage.live_region.byte_offset
    with part.host_view("r"):
        assert api.barriers == [("begin", base, 128, "r")]
    assert api.barriers[1] == ("end", base, 128, "r")


def test_lasting_view(api: QueueingDeviceAPI) -> None:
    tensor = shared(api)
    view = tensor.host_view("rw")
    host = view.tensor
    assert str(host.device) == "cpu:0"
    assert api.barriers == []  # they are the caller's
    api.buffers[tensor.storage.live_region.space.handle][0:100] = b"\5" * 100
    view.invalidate()
    np.testing.assert_array_equal(np.asarray(host), np.full(100, 5, np.uint8))
    np.asarray(host)[:] = 6
    view.flush()
    assert api.buffers[tensor.storage.live_region.space.handle].raw[:100] == b"\6" * 100
    np.from_dlpack(view)[0] = 8
    assert np.asarray(host)[0] == 8
    view.close()
    for use in (view.flush, view.invalidate, view.__enter__, lambda: view.tensor):
        with pytest.raises(UseAfterFreeError, match="was closed"):
            use()
    with pytest.raises(HostAccessError, match="nothing to flush"):
        tensor.host_view("r").flush()


def test_conflicting_views() -> None:
    tensor = lb.empty(8, dtype="int32")
    front, back = (Tensor(tensor.storage, "int32", (4,), byte_offset=offset) for offset in (0, 16))
    assert not any_view_open()
    writer = back.host_view("w")
    overlap = pytest.raises(HostAccessError, match="while host view 'r' of Tensor")
    with tensor.host_view("r"), front.host_view("r"), overlap:
        writer.__enter__()
    with front.host_view("rw"), back.host_view("w"):
        assert any_view_open()
        with pytest.raises(HostAccessError), tensor.host_view("r"):
            pytest.fail("opened a view over bytes that are being written")
    assert not any_view_open()
    with tensor.host_view("rw"):
        pass


def test_submitting_a_copy_conflicts_with_an_open_view() -> None:
    tensor = lb.empty(8, dtype="int32")
    with tensor.host_view("w") as a:
        a[:] = 3
        with pytest.raises(HostAccessError, match="copy reads bytes 0 to 32"):
            tensor.copy()
    assert np.asarray(tensor.copy()).tolist() == [3] * 8


def test_a_view_is_entered_once() -> None:
    view = lb.empty(8, dtype="int32").host_view("r")
    with view, pytest.raises(HostAccessError, match="open already"):
        view.__enter__()


def test_an_open_view_holds_the_storage() -> None:
    tensor = lb.empty(8, dtype="int32")
    with tensor.host_view("r"), pytest.raises(StorageInUseError, match="host view 'r'"):
        tensor.storage.free()


def test_refusals(api: QueueingDeviceAPI) -> None:
    tensor = lb.empty((4, 4), dtype="int32")
    with pytest.raises(HostViewError, match="mode 'x' is unknown; legal: r, w, rw"):
        tensor.host_view("x")  # type: ignore[arg-type]
    columns = Tensor(tensor.storage, "int32", (4, 2), (4, 1))
    with pytest.raises(HostViewError, match="discard the 24 bytes between its elements; ask for 'rw'"):
        columns.host_view("w")
    with columns.host_view("rw") as a:
        a[:] = 1
    frozen = lb.asarray(np.frombuffer(bytes(8), np.int32))
    with pytest.raises(HostViewError, match="read-only"):
        frozen.host_view("rw")
    assert frozen.host_view().tensor.readonly
    hidden = lb.empty(4, dtype="int8", device=Device(api, 0))
    with pytest.raises(HostViewError, match="access 'none' to scope 'global' of queueing:0"):
        hidden.host_view("r")


def test_not_coherent_without_barriers() -> None:
    class Careless(QueueingDeviceAPI):
        begin_host_access = None  # type: ignore[assignment]
        end_host_access = None  # type: ignore[assignment]

    with pytest.raises(HostViewError, match="not coherent and the device has no begin_host_access"):
        lb.empty(4, dtype="int8", device=Device(Careless(), 0), scope="shared").host_view("r")
