"""A lost device stays lost for every handle, loses nothing of the host's, and comes back by reopen()."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Region, Space, Stream
from landbridge.device.import_source import HostPointer
from landbridge.device.registry import device, register, unregister
from landbridge.errors import DeviceLostError, ForkedDeviceError
from landbridge.memory.borrowed import import_memory
from tests.device.queueing_device import QueuedCopy, QueueingDeviceAPI


class FragileAPI(QueueingDeviceAPI):
    """Is unplugged when told so; every call then says it."""

    def __init__(self) -> None:
        super().__init__()
        self.unplugged = False
        self.log: list[str] = []

    def open(self, index: int, **options: object) -> None:
        self.log.append("open")
        self.unplugged = False

    def close(self, index: int) -> None:
        self.log.append("close")
        self._use()

    def reset(self, index: int) -> None:
        self.log.append("reset")

    def _use(self) -> None:
        if self.unplugged:
            raise DeviceLostError("unplugged")

    def alloc_data_space(self, *args: Any) -> Space:
        self._use()
        return super().alloc_data_space(*args)

    def free_data_space(self, space: Space) -> None:
        self.log.append("free")
        self._use()
        super().free_data_space(space)

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> QueuedCopy:
        self._use()
        return super().copy_data_from_to(src, dst, nbytes, stream, keep_alive)

    def import_memory(self, index: int, source: HostPointer, access: str) -> Space:
        return Space(Device(self, index), "shared", source.address)

    def release_import(self, space: Space) -> None:
        self.log.append("release")

    def host_pointer(self, space: Space) -> int:
        return space.handle if space.handle > 1 << 20 else super().host_pointer(space)


def test_loss_is_sticky_and_reopen_makes_a_new_device() -> None:
    api = FragileAPI()
    register(api)
    try:
        npu = device("queueing:1")
        tensor = lb.asarray(np.arange(4), device=npu)
        twin = lb.asarray(np.arange(4), device=npu)
        api.unplugged = True
        with pytest.raises(DeviceLostError, match=r"1 is lost \(unplugged\); the last work submitted was copy of"):
            tensor.copy()
        api.unplugged = False  # it may answer again: its memory is gone all the same
        uses = [
            lambda: tensor.to_device("cpu"),
            lambda: tensor.copy(),
            lambda: lb.empty(4, dtype="int8", device=npu),
            lambda: lb.empty(4, dtype="int8", device="queueing:1"),
            lambda: Device(api, 1).state.check(),
        ]
        for use in uses:
            with pytest.raises(DeviceLostError, match="last work submitted was copy of"):
                use()
        assert npu.is_lost and device("queueing:1") is npu
        assert "lost" not in repr(tensor) and repr(tensor)  # can still be printed
        lb.empty(4, dtype="int8", device="queueing:0")  # the other instance works
        before = len(api.buffers)
        tensor.storage.free()
        del twin
        assert "free" not in api.log and len(api.buffers) == before

        api.log.clear()
        again = npu.reopen()
        assert api.log == ["close", "open"]
        assert again != npu and not again.is_lost and npu.is_lost
        assert device("queueing:1") == again == Device(api, 1)
        assert npu.reopen() == again  # the old handle leads to the new life, and ends it not
        assert api.log == ["close", "open"]
        fresh = lb.asarray(np.arange(4), device=again)
        assert np.asarray(fresh.to_device("cpu")).tolist() == [0, 1, 2, 3]
    finally:
        unregister("queueing")


def test_a_loss_seen_while_waiting() -> None:
    class Dead(QueuedCopy):
        def synchronize(self, timeout: float | None = None) -> bool:
            raise DeviceLostError("no answer")

    class Hangs(QueueingDeviceAPI):
        def copy_data_from_to(
            self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object
        ) -> QueuedCopy:
            return Dead(self, src, dst, nbytes)

    npu = Device(Hangs(), 0)
    source = lb.empty(4, dtype="int8", device=npu)
    twin = source.copy()
    with pytest.raises(DeviceLostError, match=r"no answer\); the last work submitted was to_device of 4 bytes"):
        np.asarray(twin.to_device("cpu"))
    assert not device("cpu").is_lost
    twin.storage.free()  # raises nothing: what was queued will never be done


def test_memory_of_the_host_stays_readable() -> None:
    api = FragileAPI()
    npu = Device(api, 0)
    array = np.arange(8, dtype=np.uint8)
    storage = import_memory(npu, HostPointer(array.ctypes.data, 8), "rw", owner=array)
    owned = lb.asarray(np.arange(3), device=npu)
    api.unplugged = True
    with pytest.raises(DeviceLostError):
        owned.copy()
    assert storage.address == array.ctypes.data
    storage.check_device()
    storage.free()
    assert "release" not in api.log


def test_a_child_process_may_not_use_the_device() -> None:
    npu = Device(QueueingDeviceAPI(), 0)
    tensor = lb.asarray(np.arange(4), device=npu)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            lb.empty(4, dtype="int8", device="cpu")
            tensor.copy()
        except ForkedDeviceError:
            try:
                npu.reopen()
            except ForkedDeviceError:
                code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.asarray(tensor.copy().to_device("cpu")).tolist() == [0, 1, 2, 3]
