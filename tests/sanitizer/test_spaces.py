"""What surrounds a space and what becomes of it: redzones, what is held back, what is given up, shared and imported."""

from __future__ import annotations

import ctypes
import gc
import mmap
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from landbridge.device.api import Device, Region, Space
from landbridge.devices.cpu import CpuDeviceAPI
from landbridge.errors import InputError, OutOfMemoryError, SanitizerError
from landbridge.memory_kind import MemoryKind
from landbridge.sanitizer import Sanitize, check_all, findings
from landbridge.sanitizer.sanitized import SanitizedDevice

LIMIT = 1 << 20


class Counting(CpuDeviceAPI):
    """The CPU, which says what it was asked for, what was freed, in order, and has ``capacity`` bytes an allocation."""

    name = "counting"
    device_type = None

    def __init__(self) -> None:
        super().__init__()
        self.requested: list[int] = []
        self.freed: list[int] = []
        self.held: dict[object, int] = {}
        self.capacity = 1 << 40
        self.changes: dict[str, object] = {}

    def count(self) -> int:
        return 2

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        kind = super().memory_kinds(index)["global"]
        return {kind.scope: replace(kind, dlpack_device=None, **self.changes)}  # type: ignore[arg-type]

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        self.requested.append(nbytes)
        if sum(self.held.values()) + nbytes > self.capacity:
            raise OutOfMemoryError("full")
        space = super().alloc_data_space(index, nbytes, alignment, scope, type_hint)
        self.held[space.handle] = nbytes
        return space

    def free_data_space(self, space: Space) -> None:
        self.freed.append(self.held.pop(space.handle))
        super().free_data_space(space)


@pytest.fixture
def inner() -> Counting:
    return Counting()


@pytest.fixture
def device(inner: Counting) -> Iterator[Device]:
    found = Device(Sanitize.wrap(Device(inner, 0)), 0)
    yield found
    assert isinstance(found.api, SanitizedDevice)
    for index in range(2):
        found.api.spaces.release_all(index)


def alloc(device: Device, nbytes: int, alignment: int = 1, index: int = 0) -> Space:
    return device.api.alloc_data_space(index, nbytes, alignment, "global", None)


def free(*spaces: Space) -> None:
    for space in spaces:
        space.device.api.free_data_space(space)


def address(space: Space) -> int:
    return int(space.device.api.host_pointer(space))  # type: ignore[attr-defined]


@pytest.mark.parametrize("alignment", [1, 64, 4 * mmap.PAGESIZE])
@pytest.mark.parametrize(
    "changes", [{}, {"size_multiple": 4096}, {"alignment": 1 << 15}, {"offset_alignment": 1 << 15}]
)
def test_redzones_keep_alignments_and_multiples(
    inner: Counting, device: Device, alignment: int, changes: dict[str, object]
) -> None:
    inner.changes = changes
    space = alloc(device, 100, alignment)
    (total,) = inner.requested
    front = max(mmap.PAGESIZE, alignment, inner.memory_kinds(0)["global"].alignment, changes.get("offset_alignment", 1))
    assert total % inner.memory_kinds(0)["global"].size_multiple == 0
    assert front + 100 + 256 <= total < front + 100 + 256 + 4096
    assert ctypes.string_at(address(space) - front, front) == b"\xfb" * front
    assert ctypes.string_at(address(space) + 100, 256) == b"\xfb" * 256
    free(space)
    assert not findings()


@pytest.mark.parametrize(
    ("changes", "around", "is_retained"),
    [({"max_bytes": 4096}, 0, True), ({"capacity": LIMIT - 1}, 0, False), ({"capacity": LIMIT}, 4096 + 256, True)],
)
def test_limits_and_small_scopes_have_no_redzones(
    inner: Counting, device: Device, changes: dict[str, object], around: int, is_retained: bool
) -> None:
    inner.changes = changes
    free(alloc(device, 64))
    assert inner.requested == [64 + around]
    assert inner.freed == ([] if is_retained else [64])


def test_where_memory_is_tight_redzones_and_what_is_held_back_are_given_up(inner: Counting, device: Device) -> None:
    inner.capacity = 4096 + 1000 + 256
    free(alloc(device, 1000))
    space = alloc(device, 2000)  # there is room when what was held back is gone
    assert inner.freed == [4096 + 1000 + 256]
    assert inner.requested[1:] == [4096 + 2000 + 256, 2000, 2000]
    with pytest.raises(OutOfMemoryError):
        alloc(device, 8000)
    free(space)


def test_the_oldest_of_64_spaces_goes_first(inner: Counting, device: Device) -> None:
    around = 4096 + 256
    for nbytes in range(1, 67):
        free(alloc(device, nbytes))
    assert [total - around for total in inner.freed] == [1, 2]


def test_64_mib_are_held_back_at_most(inner: Counting, device: Device) -> None:
    big = (16 << 20) - 4096 - 256  # with its redzones a quarter of what is held back
    for _ in range(5):
        free(alloc(device, big))
    assert len(inner.freed) == 1
    free(alloc(device, big + 1))
    assert len(inner.freed) == 2
    assert inner.freed[1] == big + 1 + 4096 + 256  # too large to be held back at all


def test_what_is_held_back_of_an_instance_counts_as_available(inner: Counting, device: Device) -> None:
    assert isinstance(device.api, SanitizedDevice)
    around = 4096 + 256
    space, other = alloc(device, 100), alloc(device, 100, index=1)
    assert device.api.spaces.held_back(0) == around
    free(space)
    assert device.api.spaces.held_back(0) == around + 100
    assert device.api.spaces.held_back(1) == around
    free(other)
    device.api.spaces.release_all(1)
    assert (device.api.spaces.held_back(0), device.api.spaces.held_back(1)) == (around + 100, 0)


def test_a_write_after_the_free_is_reported_when_it_is_given_back_and_once(device: Device) -> None:
    assert isinstance(device.api, SanitizedDevice)
    space = alloc(device, 64)
    start = address(space)
    free(space)
    ctypes.memset(start + 63, 1, 1)
    device.api.spaces.release_all(0)
    (found,) = findings()
    assert found.kind == "use after free"
    assert "byte 63 of 64 bytes" in found.text


def test_a_write_after_the_free_is_reported_once_however_often_it_is_looked_for(device: Device) -> None:
    space = alloc(device, 64)
    start = address(space)
    free(space)
    ctypes.memset(start + 9, 1, 1)
    check_all()
    check_all()
    assert [found.kind for found in findings()] == ["use after free"]


def test_a_redzone_that_was_written_is_reported_once_by_check_all(device: Device) -> None:
    space = alloc(device, 64)
    ctypes.memset(address(space) + 64, 1, 1)
    check_all()
    check_all()
    assert [found.kind for found in findings()] == ["redzone"]
    free(space)


def test_large_memory_is_filled_to_its_end(device: Device) -> None:
    space = alloc(device, (2 << 20) + 3)
    assert set(ctypes.string_at(address(space), (2 << 20) + 3)) == {0xCD}
    assert ctypes.string_at(address(space) + (2 << 20) + 3, 256) == b"\xfb" * 256
    free(space)
    assert not findings()


def test_a_copy_outside_of_a_space_is_refused(device: Device) -> None:
    a, b = alloc(device, 64), alloc(device, 64)
    for region, other in ((Region(a, 8), Region(b)), (Region(b), Region(a, 8))):
        with pytest.raises(InputError, match="64"):
            device.api.copy_data_from_to(region, other, 60, None, None)
    free(a, b)


def test_holes_are_carried_to_where_a_copy_puts_them(device: Device) -> None:
    a, b = (alloc(device, 64) for _ in range(2))
    blocks = [space.handle.block for space in (a, b)]
    blocks[0].written.add(0, 16)
    blocks[1].written.add(0, 64)
    device.api.copy_data_from_to(Region(a, 8), Region(b, 40), 16, None, None)
    assert blocks[1].written.outside(0, 64) == [(48, 56)]
    free(a, b)


def test_a_double_free_is_found_though_nothing_is_held_back(inner: Counting, device: Device) -> None:
    inner.changes = {"capacity": LIMIT - 1}
    space = alloc(device, 64)
    free(space)
    with pytest.raises(SanitizerError, match=r"use after free: free_data_space .*test_spaces.* freed at .*test_spaces"):
        free(space)
    del space
    gc.collect()
    check_all()
    assert [found.kind for found in findings()] == ["use after free"]
