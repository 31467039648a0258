"""What devices check alike, on a device that is no driver's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from landbridge.device.api import Device, Region, Space, Stream
from landbridge.device.checks import (
    check_inside,
    check_request,
    host_address,
    host_reaches,
    is_copy_to_itself,
    kind_of,
    owning_device,
    stream_handle,
)
from landbridge.device.registry import device
from landbridge.device.state import begin_anew
from landbridge.devices.opencl.absent import AbsentDeviceAPI
from landbridge.errors import DeviceLostError, HostViewError, InputError, UseAfterFreeError
from landbridge.memory_kind import HostAccess, MemoryKind
from tests.device.queueing_device import QueueingDeviceAPI

API = QueueingDeviceAPI()
FIRST, SECOND = Device(API, 0), Device(API, 1)
CPU = device("cpu")


@dataclass
class Handle:
    alive: bool = True


class Point:
    def __init__(self) -> None:
        self.requested: list[float | None] = []

    def query(self) -> bool:
        return not self.requested

    def synchronize(self, timeout: float | None = None) -> bool:
        self.requested.append(timeout)
        return True


def test_a_stream_is_of_one_instance_and_not_freed() -> None:
    handle = Handle()
    assert stream_handle(API, 1, Stream(SECOND, handle)) is handle
    for other in (FIRST, CPU, Device(QueueingDeviceAPI(), 1)):
        with pytest.raises(InputError, match=f"a stream of {other} was given to queueing:1"):
            stream_handle(API, 1, Stream(other, handle))
    with pytest.raises(UseAfterFreeError, match="create another one"):
        stream_handle(API, 1, Stream(SECOND, Handle(alive=False)))


def test_a_stream_of_a_life_that_ended() -> None:
    api = QueueingDeviceAPI()
    old = Stream(Device(api, 1), Handle())
    assert stream_handle(api, 1, old) is old.handle
    begin_anew(api, 1, "a test", {})
    with pytest.raises(DeviceLostError, match="of a life of queueing:1 that ended; create another one"):
        stream_handle(api, 1, old)
    assert stream_handle(api, 0, Stream(Device(api, 0), old.handle)) is old.handle


def test_a_copy_is_for_the_destination_first() -> None:
    first, second, host = Space(FIRST, "global", 1), Space(SECOND, "global", 2), Space(CPU, "global", 3)
    assert owning_device(API, first, second) is SECOND
    assert owning_device(API, first, host) is FIRST
    with pytest.raises(InputError, match="copies neither from cpu:0 nor to cpu:0"):
        owning_device(API, host, host)


def test_copies_within_a_space() -> None:
    space, other = Space(FIRST, "global", 1), Space(FIRST, "global", 2)
    assert is_copy_to_itself(API, Region(space, 8), Region(space, 8), 16) is True
    assert is_copy_to_itself(API, Region(space, 8), Region(other, 8), 16) is False
    assert is_copy_to_itself(API, Region(space, 8), Region(space, 24), 16) is False
    for start in (7, 23):
        with pytest.raises(InputError, match=f"from 8 to {start} of one space overlaps"):
            is_copy_to_itself(API, Region(space, 8), Region(space, start), 16)


def test_bytes_lie_inside() -> None:
    check_inside(0, 64, 64, "here")
    check_inside(64, 0, 64, "here")
    for byte_offset, nbytes in ((1, 64), (-1, 1), (0, -1), (65, 0)):
        with pytest.raises(InputError, match=f"here: {nbytes} bytes from {byte_offset} on do not lie"):
            check_inside(byte_offset, nbytes, 64, "here")


def test_requests() -> None:
    check_request(0, 1, "here")
    for nbytes, alignment in ((-1, 1), (1, 0), (1, 3)):
        with pytest.raises(InputError, match=f"{nbytes} bytes aligned to {alignment}; legal: .* a power of two"):
            check_request(nbytes, alignment, "here")


def test_scopes() -> None:
    kinds = {"global": MemoryKind("global", host_access="none", coherent=False)}
    assert kind_of(kinds, "", "here") is kinds["global"]
    with pytest.raises(InputError, match="device here has no memory scope 'vtcm'; legal: global"):
        kind_of(kinds, "vtcm", "here")


def test_host_addresses() -> None:
    space = CPU.api.alloc_data_space(0, 64, 1, "global", None)
    assert host_address(Region(space, 8)) == space.handle + 8
    CPU.api.free_data_space(space)
    with pytest.raises(HostViewError, match="opencl:0 has no memory that the host can address"):
        host_address(Region(Space(Device(AbsentDeviceAPI()), "global", 1)))


@pytest.mark.parametrize("host_access", ["none", "read", "read_write"])
@pytest.mark.parametrize("coherent", [True, False])
@pytest.mark.parametrize("ndim", [1, 2])
@pytest.mark.parametrize("has_address", [True, False])
def test_the_host_reaches_what_it_maps_whole_without_barriers(
    host_access: HostAccess, coherent: bool, ndim: int, has_address: bool
) -> None:
    kind = MemoryKind("global", host_access, coherent=coherent, ndim=ndim)

    class OneKind(QueueingDeviceAPI):
        name = "one-kind"

        def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
            return {"global": kind}

    if not has_address:
        OneKind.host_pointer = None  # type: ignore[assignment, method-assign]
    space = Space(Device(OneKind()), "global", 1)
    assert host_reaches(space) is (host_access == "read_write" and coherent and ndim == 1 and has_address)
