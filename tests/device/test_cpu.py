"""The host as a device: its memory is mapped, shared over fork and given back."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
from pathlib import Path

import numpy as np
import pytest

from landbridge.device.api import Region
from landbridge.device.attr import DeviceAttr
from landbridge.device.import_source import BusAddress, DmaBuf, HostPointer
from landbridge.device.registry import device
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


@pytest.mark.parametrize("shared", [True, False])
def test_memory_is_shared_over_fork_when_requested(shared: bool) -> None:
    api = CpuDeviceAPI()
    space = api.alloc_shared_space(0, 8, 8, "global") if shared else api.alloc_data_space(0, 8, 8, "global", None)
    child = os.fork()
    if child == 0:
        ctypes.memset(space.handle, 7, 8)
        os._exit(0)
    os.waitpid(child, 0)
    assert ctypes.string_at(space.handle, 8) == (b"\7" if shared else b"\0") * 8
    api.free_data_space(space)


def test_shared_memory_is_mapped_by_its_file_descriptor() -> None:
    api = CpuDeviceAPI()
    space = api.alloc_shared_space(0, 3 << 20, 64, "global")
    fd = api.export_fd(space)
    with mmap.mmap(fd, 3 << 20) as other:
        ctypes.memset(space.handle + (2 << 20), 9, 8)
        assert other[2 << 20 : (2 << 20) + 8] == b"\x09" * 8
    os.close(fd)
    api.free_data_space(space)
    assert api._files == {}
    private = api.alloc_data_space(0, 8, 8, "global", None)
    with pytest.raises(ZeroCopyError, match="was not made to be shared"):
        api.export_fd(private)
    api.free_data_space(private)
    with pytest.raises(OutOfMemoryError, match="refused to map"):
        api.alloc_shared_space(0, 1 << 62, 64, "global")


@pytest.mark.parametrize("scope", ["global", "global.pinned"])
@pytest.mark.parametrize("nbytes", [5000, 100_000])
def test_shared_memory_begins_where_its_file_does_whatever_its_alignment(scope: str, nbytes: int) -> None:
    api = CpuDeviceAPI()
    spaces = [api.alloc_shared_space(0, nbytes, 1 << 16, scope) for _ in range(3)]
    assert [space.handle % (1 << 16) for space in spaces] == [0, 0, 0]
    for number, space in enumerate(spaces):
        ctypes.memset(space.handle, number + 1, nbytes)
    for number, space in enumerate(spaces):
        fd = api.export_fd(space)
        assert os.fstat(fd).st_size == nbytes
        with mmap.mmap(fd, nbytes) as other:
            assert other[:] == bytes([number + 1]) * nbytes
            other[:] = b"\x7e" * nbytes
        os.close(fd)
        assert ctypes.string_at(space.handle, nbytes) == b"\x7e" * nbytes
        api.free_data_space(space)
    assert (api._mappings, api._files) == ({}, {})


def test_large_private_memory_has_huge_pages() -> None:
    if "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text():
        pytest.skip("this kernel has no transparent huge pages")
    api = CpuDeviceAPI()
    space = api.alloc_data_space(0, 8 << 20, 64, "global", None)
    assert space.handle % (2 << 20) == 0
    assert "hg" in _vm_flags(space.handle)
    api.free_data_space(space)


def test_the_beginning_of_what_may_be_reserved_has_small_pages() -> None:
    """A Session of open sizes reserves as much as most will need, and touches a few KiB."""
    if "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text():
        pytest.skip("this kernel has no transparent huge pages")
    api = CpuDeviceAPI()
    space = api.alloc_data_space(0, 128 << 20, 64, "global", None)
    assert "nh" in _vm_flags(space.handle)
    assert "hg" in _vm_flags(space.handle + (2 << 20))
    api.free_data_space(space)


def _vm_flags(address: int) -> list[str]:
    """What the kernel notes about the mapping that holds ``address``."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) <= address < int(found[2], 16)
        elif inside and line.startswith("VmFlags:"):
            return line.split()[1:]
    return []


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
    with pytest.raises(ZeroCopyError, match="no address in this process"):
        api.import_memory(0, BusAddress(0x8000, None, 4), "r")
    with pytest.raises(ZeroCopyError, match="no file is behind descriptor -1"):
        api.import_memory(0, DmaBuf(-1, 0, 4), "r")


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
