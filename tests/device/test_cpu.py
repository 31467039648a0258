"""The host as a device: its memory is mapped, shared over fork and given back."""

from __future__ import annotations

import ctypes
import mmap
import os

import numpy as np
import pytest

from landbridge.device.attr import DeviceAttr
from landbridge.device.registry import device
from landbridge.device.space import BusAddress, DmaBuf, HostPointer, Region
from landbridge.devices.cpu import CpuDeviceAPI
from landbridge.errors import InputError, OutOfMemoryError, ZeroCopyError


@pytest.mark.parametrize(("nbytes", "alignment"), [(1, 1), (4097, 64), (100, 1 << 16), (3 << 20, 64), (0, 1)])
def test_alloc(nbytes: int, alignment: int) -> None:
    api = CpuDeviceAPI()
    space = api.alloc_data_space(0, nbytes, alignment, "global", None)
    address = api.host_pointer(space)
    assert address % max(alignment, mmap.PAGESIZE) == 0
    ctypes.memset(address, 0x5A, nbytes)
    assert ctypes.string_at(address, nbytes) == b"\x5a" * nbytes
    api.free_data_space(space)
    assert api._mappings == {}


def test_memory_is_shared_over_fork() -> None:
    api = CpuDeviceAPI()
    space = api.alloc_data_space(0, 8, 8, "global", None)
    child = os.fork()
    if child == 0:
        ctypes.memset(space.handle, 7, 8)
        os._exit(0)
    os.waitpid(child, 0)
    assert ctypes.string_at(space.handle, 8) == b"\7" * 8
    api.free_data_space(space)


def test_copy() -> None:
    api = CpuDeviceAPI()
    src, dst = (api.alloc_data_space(0, 64, 64, "global", "int8") for _ in range(2))
    ctypes.memset(src.handle, 3, 64)
    assert api.copy_data_from_to(Region(src, 8), Region(dst, 16), 4, None, None) is None
    assert ctypes.string_at(dst.handle, 24) == bytes(16) + b"\3\3\3\3" + bytes(4)


def test_refusals() -> None:
    api = CpuDeviceAPI()
    with pytest.raises(OutOfMemoryError, match="refused to map"):
        api.alloc_data_space(0, 1 << 62, 64, "global", None)
    with pytest.raises(InputError, match="no memory scope 'vtcm'"):
        api.alloc_data_space(0, 1, 1, "vtcm", None)


def test_import() -> None:
    api = CpuDeviceAPI()
    array = np.arange(4, dtype=np.int8)
    space = api.import_memory(0, HostPointer(array.ctypes.data, 4), "rw")
    assert api.host_pointer(space) == array.ctypes.data
    mapped = api.import_memory(0, BusAddress(0x8000, array.ctypes.data, 4), "r")
    assert api.host_pointer(mapped) == array.ctypes.data
    api.release_import(space)
    for source in (DmaBuf(3, 0, 4), BusAddress(0x8000, None, 4)):
        with pytest.raises(ZeroCopyError, match="no address in this process"):
            api.import_memory(0, source, "r")


def test_attributes() -> None:
    cpu = device("cpu")
    assert cpu.attr(DeviceAttr.COMPUTE_UNITS) == len(os.sched_getaffinity(0))
    assert cpu.attr(DeviceAttr.PAGE_BYTES) == os.sysconf("SC_PAGE_SIZE")
    assert cpu.attr(DeviceAttr.TOTAL_MEMORY) == pytest.approx(
        os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), rel=0.01
    )
    available = cpu.attr(DeviceAttr.AVAILABLE_MEMORY)
    assert isinstance(available, int) and 0 < available < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert cpu.attr(DeviceAttr.MAX_THREADS_PER_BLOCK) is None
    for attr in DeviceAttr:
        cpu.attr(attr)  # never raises


def test_attributes_without_kernel_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("landbridge.devices.cpu._text", lambda path: "")
    api = CpuDeviceAPI()
    assert api.get_attr(0, DeviceAttr.TOTAL_MEMORY) is None
    assert api.get_attr(0, DeviceAttr.FEATURES) is None
    assert api.memory_kinds(0)["global"].capacity is None
