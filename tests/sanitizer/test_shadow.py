"""Memory that is not coherent, on a machine where it is: a missing barrier shows all the same."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Region
from landbridge.devices.cpu import CpuDeviceAPI
from landbridge.errors import SanitizerError
from landbridge.memory_kind import MemoryKind
from landbridge.sanitizer import Sanitize, findings


class Incoherent(CpuDeviceAPI):
    """The CPU's memory, said to need barriers, which do nothing."""

    name = "incoherent"
    device_type = None

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        kind = super().memory_kinds(index)["global"]
        return {kind.scope: replace(kind, coherent=False, coherence_granule=64, dlpack_device=None)}

    def begin_host_access(self, region: Region, nbytes: int, mode: str) -> None:
        pass

    def end_host_access(self, region: Region, nbytes: int, mode: str) -> None:
        pass


@pytest.fixture
def device() -> Iterator[Device]:
    inner = Device(Incoherent(), 0)
    yield Device(Sanitize.wrap(inner), 0)


def test_barriers_carry_bytes_both_variants(device):
    t, space = lb.empty((32,), dtype="float32", device=device), device.api.alloc_data_space(0, 128, 1, "global", None)
    with t.host_view("w") as a:
        a[:] = np.arange(32)
    region = t.storage.live_region
    device.api.copy_data_from_to(region, Region(space), 128, None, None)
    with t.host_view("rw") as a:
        assert (a == np.arange(32)).all()
        a[:] = 0
    device.api.copy_data_from_to(Region(space), region, 128, None, None)
    with t.host_view("r") as a:
        assert (a == np.arange(32)).all()
    device.api.free_data_space(space)
    assert not findings()


def test_without_the_first_barrier_the_host_sees_old_bytes(device):
    space, source = (device.api.alloc_data_space(0, 64, 1, "global", None) for _ in range(2))
    address = device.api.host_pointer(source)
    device.api.begin_host_access(Region(source), 64, "w")
    ctypes.memset(address, 9, 64)
    device.api.end_host_access(Region(source), 64, "w")
    seen = device.api.host_pointer(space)
    device.api.copy_data_from_to(Region(source), Region(space), 64, None, None)
    assert ctypes.string_at(seen, 64) != b"\x09" * 64
    device.api.begin_host_access(Region(space), 64, "r")
    assert ctypes.string_at(seen, 64) == b"\x09" * 64
    device.api.end_host_access(Region(space), 64, "r")
    for each in (space, source):
        device.api.free_data_space(each)


def test_without_the_last_barrier_the_device_sees_old_bytes(device):
    space, target = (device.api.alloc_data_space(0, 64, 1, "global", None) for _ in range(2))
    address = device.api.host_pointer(space)
    device.api.begin_host_access(Region(space), 64, "w")
    ctypes.memset(address, 9, 64)
    device.api.copy_data_from_to(Region(space), Region(target), 64, None, None)
    device.api.begin_host_access(Region(target), 64, "r")
    assert ctypes.string_at(device.api.host_pointer(target), 64) != b"\x09" * 64
    device.api.end_host_access(Region(space), 64, "w")
    device.api.copy_data_from_to(Region(space), Region(target), 64, None, None)
    device.api.begin_host_access(Region(target), 64, "r")
    assert ctypes.string_at(device.api.host_pointer(target), 64) == b"\x09" * 64
    for each in (space, target):
        device.api.free_data_space(each)


def test_a_view_that_is_retained_after_its_with_is_found_when_it_wrote(device):
    t = lb.empty((32,), dtype="float32", device=device)
    with t.host_view("w") as a:
        a[:] = 0
    a[3] = 1  # too late: the device will not see it
    with pytest.raises(SanitizerError, match=r"missing barrier: .* byte 14 of 128 bytes"), t.host_view("r"):
        pass
