"""What a device grants is checked when it is allocated: the addresses of memory are aligned as requested and stated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

import landbridge as lb
from landbridge.device import registry
from landbridge.device.api import Region, Space
from landbridge.errors import DeviceError
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from tests.testing.mutants import Correct


class Lying(Correct):
    """Addresses are ``aside`` bytes beside where they should be, of the host or of the device."""

    name: ClassVar[str] = "lying"
    aside = 0
    device_aside = 0
    freed = 0

    def host_pointer(self, space: Space) -> int:
        return super().host_pointer(space) + self.aside

    def device_address(self, region: Region) -> int:
        return super().device_address(region) + self.device_aside

    def free_data_space(self, space: Space) -> None:
        self.freed += 1
        super().free_data_space(space)


@pytest.fixture
def api() -> Iterator[Lying]:
    api = Lying()
    registry.register(api)
    yield api
    registry.unregister("lying")


def test_the_kind_has_the_scopes_of_the_test(api: Lying) -> None:
    kinds = api.memory_kinds(0)
    assert kinds["shared"].coherent and not kinds["cached"].coherent and isinstance(api, SimLazyDeviceAPI)


def test_memory_that_is_not_aligned_as_stated(api: Lying) -> None:
    api.aside = 16
    message = (
        r"device lying:0: alloc_data_space\(\) gave a space in scope 'shared' whose host's address 0x[0-9a-f]+ "
        r"is not a multiple of 256, the larger of the alignment that was requested and the 256 that its MemoryKind"
    )
    with pytest.raises(DeviceError, match=message):
        lb.empty(64, dtype="float32", device="lying", scope="shared")
    assert api.freed == 1


def test_memory_that_is_not_aligned_as_requested(api: Lying) -> None:
    allocator = NaiveAllocator(lb.device("lying"), "shared")
    api.aside = 256
    with pytest.raises(DeviceError, match="is not a multiple of 4096"):
        allocator.allocate(64, 4096)
    assert allocator.allocate(64, 256).nbytes >= 64
    assert api.freed == 1


def test_addresses_of_the_device(api: Lying) -> None:
    api.device_aside = 64
    for scope in ("global", "shared"):  # hidden from the host too
        with pytest.raises(DeviceError, match=rf"scope '{scope}' whose device's address 0x[0-9a-f]+ is not"):
            lb.empty(64, dtype="float32", device="lying", scope=scope)


def test_memory_that_is_not_coherent_is_checked_when_it_is_mapped(api: Lying) -> None:
    tensor = lb.empty(64, dtype="float32", device="lying", scope="cached")
    api.aside = 16
    with pytest.raises(DeviceError, match=r"host_pointer\(\) gave a space in scope 'cached'.* not a multiple of 256"):
        _ = tensor.data_address
