"""The sanitizer's own reads and writes of a device's memory: by its address between barriers, else by copies."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from landbridge.device.api import Device, Event, Region, Space, Stream
from landbridge.device.registry import device
from landbridge.devices.cpu import CpuDeviceAPI
from landbridge.errors import HostViewError
from landbridge.memory_kind import MemoryKind
from landbridge.sanitizer.borrowed import BorrowedSnapshot
from landbridge.sanitizer.findings import findings
from landbridge.sanitizer.inner_bytes import InnerBytes
from landbridge.sanitizer.shadow import Shadow

CPU = device("cpu")
MIB = 1 << 20


class Reported(CpuDeviceAPI):
    """The CPU's memory, which notes the barriers and copies that it is asked for."""

    name = "told"
    device_type = None
    host_access: Any = "read_write"

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[object, ...]] = []
        self.event: Event | None = None

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        kind = super().memory_kinds(index)["global"]
        return {"global": replace(kind, host_access=self.host_access, coherent=False, dlpack_device=None)}

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        self.calls.append(("copy", nbytes, stream))
        super().copy_data_from_to(src, dst, nbytes, stream, keep_alive)
        return self.event


class WithBarriers(Reported):
    def begin_host_access(self, region: Region, nbytes: int, mode: str) -> None:
        self.calls.append(("begin", region.byte_offset, nbytes, mode))

    def end_host_access(self, region: Region, nbytes: int, mode: str) -> None:
        self.calls.append(("end", region.byte_offset, nbytes, mode))


class Hidden(Reported):
    host_access = "none"
    reaches = True

    def can_copy(self, src: Space, dst: Space) -> bool:
        return self.reaches


class Unreachable(Reported):
    host_access = "none"


class NoAddressNow(Hidden):
    host_access = "read_write"

    def host_pointer(self, space: Space) -> int:
        raise HostViewError("no address")


class Waited:
    """An event that says ``done``."""

    def __init__(self, done: bool) -> None:
        self.done, self.timeouts = done, list[float | None]()

    def query(self) -> bool:
        return self.done

    def synchronize(self, timeout: float | None = None) -> bool:
        self.timeouts.append(timeout)
        return self.done


def space_of(api: Reported, nbytes: int) -> tuple[InnerBytes, Space]:
    space = api.alloc_data_space(0, nbytes, 1, "global", None)
    ctypes.memset(space.handle, 0x11, nbytes)
    return InnerBytes(Device(api, 0), CPU), space


def content(space: Space, nbytes: int) -> bytes:
    return ctypes.string_at(space.handle, nbytes)


@pytest.mark.parametrize("kind", [Reported, WithBarriers, Hidden, NoAddressNow])
def test_what_is_written_and_filled_is_read_back_and_nothing_beside_it(kind: type[Reported]) -> None:
    api = kind()
    bytes_of, space = space_of(api, 64)
    assert bytes_of.write(Region(space, 8), b"abcdef") is True
    assert content(space, 64) == b"\x11" * 8 + b"abcdef" + b"\x11" * 50
    assert bytes_of.read(Region(space, 7), 8) == b"\x11abcdef\x11"
    assert bytes_of.fill(Region(space, 20), 9, 0xCD) is True
    assert content(space, 64)[14:] == b"\x11" * 6 + b"\xcd" * 9 + b"\x11" * 35
    if kind is WithBarriers:
        assert api.calls == [
            ("begin", 8, 6, "rw"),
            ("end", 8, 6, "rw"),
            ("begin", 7, 8, "r"),
            ("end", 7, 8, "r"),
            ("begin", 20, 9, "rw"),
            ("end", 20, 9, "rw"),
        ]
    copies = [("copy", 6, None), ("copy", 8, None), ("copy", 9, None)]
    assert kind in (Reported, WithBarriers) or api.calls == copies
    api.free_data_space(space)


def test_a_large_fill_goes_in_pieces_of_a_mebibyte() -> None:
    api = WithBarriers()
    bytes_of, space = space_of(api, 2 * MIB + 100)
    assert bytes_of.fill(Region(space, 50), 2 * MIB + 5, 0xCD)
    filled = content(space, 2 * MIB + 100)
    assert filled.count(0xCD) == 2 * MIB + 5
    assert filled[:50] + filled[2 * MIB + 55 :] == b"\x11" * 95
    assert [call[1:3] for call in api.calls if call[0] == "end"] == [(50, MIB), (50 + MIB, MIB), (50 + 2 * MIB, 5)]
    api.free_data_space(space)


def test_what_nobody_reaches_is_reported() -> None:
    refused = Hidden()
    refused.reaches = False
    for api in (Unreachable(), refused):
        bytes_of, space = space_of(api, 64)
        assert bytes_of.write(Region(space), b"a") is False
        assert bytes_of.fill(Region(space), 4, 1) is False
        assert bytes_of.read(Region(space), 4) is None
        assert content(space, 64) == b"\x11" * 64
        assert api.calls == []
        api.free_data_space(space)


@pytest.mark.parametrize("done", [True, False])
def test_a_copy_is_waited_for_and_no_longer_than_20_seconds(done: bool) -> None:
    api = Hidden()
    bytes_of, space = space_of(api, 64)
    api.event = event = Waited(done)
    assert bytes_of.write(Region(space), b"a") is done
    assert bytes_of.read(Region(space), 1) == (b"a" if done else None)
    assert event.timeouts == [20.0, 20.0]
    api.free_data_space(space)


def test_a_snapshot_is_of_memory_of_the_host_and_of_some_bytes() -> None:
    api = Reported()
    _, owned = space_of(api, 64)
    memory = ctypes.create_string_buffer(b"0123456789", 10)
    host = Space(CPU, "global", ctypes.addressof(memory))
    assert BorrowedSnapshot.of(Region(owned), 8, CPU, "a copy") is None
    assert BorrowedSnapshot.of(Region(host), 0, CPU, "a copy") is None
    found = BorrowedSnapshot.of(Region(host, 3), 4, CPU, "a copy")
    assert found is not None
    assert (found.address, found.content) == (ctypes.addressof(memory) + 3, b"3456")
    for number in (2, 7):  # beside it
        memory[number] = b"x"
    found.check()
    assert findings() == ()
    memory[5] = b"x"
    found.check()
    assert [f.kind for f in findings()] == ["source changed"]
    assert "byte 2 of the host memory that a copy reads" in findings()[0].text
    api.free_data_space(owned)


@pytest.mark.parametrize("alignment", [64, 4096, 2 << 20, 4 << 20])
def test_a_shadow_is_as_aligned_as_the_memory_up_to_two_mebibytes(alignment: int) -> None:
    memory = ctypes.create_string_buffer(2 * alignment + 128)
    start = -(-ctypes.addressof(memory) // alignment) * alignment
    for address, wanted in ((start, min(alignment, 2 << 20)), (start + 64, 64)):
        shadow = Shadow(address, 128)
        assert shadow.address % wanted == 0
        assert ctypes.string_at(shadow.address, 128) == b"\xcd" * 128


def test_a_shadow_of_no_bytes() -> None:
    memory = ctypes.create_string_buffer(1)
    shadow = Shadow(ctypes.addressof(memory), 0)
    assert shadow.changed(0, 0) is None
    shadow.bring(0, 0)
    shadow.send(0, 0)


def test_barriers_of_a_part_of_a_shadow() -> None:
    memory = ctypes.create_string_buffer(bytes(range(96)), 96)
    shadow = Shadow(ctypes.addressof(memory), 96)
    seen = lambda: ctypes.string_at(shadow.address, 96)  # noqa: E731
    shadow.bring(32, 16)
    assert seen() == b"\xcd" * 32 + bytes(range(32, 48)) + b"\xcd" * 48
    assert shadow.changed(0, 96) is None
    ctypes.memset(shadow.address + 60, 7, 3)
    assert (shadow.changed(0, 96), shadow.changed(61, 20), shadow.changed(0, 60), shadow.changed(63, 9)) == (
        60,
        61,
        None,
        None,
    )
    shadow.send(60, 2)
    assert memory.raw == bytes(range(60)) + b"\x07\x07" + bytes(range(62, 96))
    assert (shadow.changed(0, 62), shadow.changed(0, 96)) == (None, 62)
    shadow.discard(62, 4)
    assert seen()[58:68] == b"\xcd\xcd\x07\x07" + b"\xcd" * 6
    assert shadow.changed(0, 96) is None
    shadow.bring(0, 96)
    assert seen() == memory.raw
    assert shadow.changed(0, 96) is None
    shadow.bring(16, 8)
    assert shadow.changed(0, 96) is None
    shadow.discard(8, 4)
    assert seen()[7:13] == b"\x07" + b"\xcd" * 4 + b"\x0c"
    assert shadow.changed(0, 96) is None
