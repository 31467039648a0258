"""``sim:board``: what it has besides ``sim:lazy``, seen by hand."""

from __future__ import annotations

import ctypes
import mmap
import os

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Region
from landbridge.device.import_source import BusAddress, DmaBuf, HostPointer
from landbridge.errors import ZeroCopyError
from landbridge.testing.sim_board import SimBoardDeviceAPI
from tests.testing.whole_suite import run_conformance


def test_it_conforms_whatever_the_order() -> None:
    assert [r for r in run_conformance("sim:board:1") if r.outcome == "fail"] == []


def test_tensors_behind_caches() -> None:
    values = np.arange(4096, dtype=np.float32)
    there = lb.empty(values.shape, dtype="float32", device="sim:board", scope="cached")
    with there.host_view("w") as a:
        a[:] = values
    with there.host_view("rw") as a:
        a[100:200] += 1
    values[100:200] += 1
    np.testing.assert_array_equal(np.asarray(there.to_device("cpu")), values)


def test_nothing_crosses_without_a_barrier() -> None:
    api = SimBoardDeviceAPI()
    space = api.alloc_data_space(0, 256, 1, "cached", None)
    ctypes.memset(api.host_pointer(space), 7, 256)
    assert not (space.handle.data == 7).any()
    api.begin_host_access(Region(space, 70), 10, "rw")
    ctypes.memset(api.host_pointer(space), 7, 256)
    api.end_host_access(Region(space, 70), 10, "rw")
    assert np.flatnonzero(space.handle.data == 7).tolist() == list(range(64, 128))  # its line, and no other


def test_its_own_memory_is_imported_and_no_other() -> None:
    api = SimBoardDeviceAPI()
    space = api.alloc_shared_space(0, 4096, 1, "shared")
    fd = api.export_fd(space)
    for source in (
        HostPointer(api.host_pointer(space), 4096),
        BusAddress(api.device_address(Region(space)), None, 4096),
        DmaBuf(fd, 0, 4096),
    ):
        assert api.import_memory(0, source, "rw") == space
    foreign = os.memfd_create("foreign")
    os.ftruncate(foreign, 4096)
    for source in (HostPointer(api.host_pointer(space) + 64, 64), DmaBuf(foreign, 0, 4096), DmaBuf(-1, 0, 1)):
        with pytest.raises(ZeroCopyError, match="own allocations alone"):
            api.import_memory(0, source, "rw")
    with mmap.mmap(fd, 4096) as seen:
        seen[:3] = b"abc"
        assert bytes(space.handle.data[:3]) == b"abc"
        api.free_data_space(space)
        assert seen[:3] == b"abc"  # whoever has the file has the bytes
    os.close(fd)
    os.close(foreign)
