"""What the host may do with memory that it reaches past its caches, or as registers."""

from __future__ import annotations

import warnings
from itertools import count
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device
from landbridge.device.memory_provider import Caching, Side
from landbridge.device.protocols import AccessMode
from landbridge.errors import HostViewError, SlowMemoryWarning, ZeroCopyError
from landbridge.tensor import Tensor
from tests.device.board_array import Dram, PynqArray
from tests.device.caching_device import CachingDeviceAPI
from tests.session.test_board_arrays import N, X, on_the_cpu

_PAGES = count(0x7000_0000, 4096)


class Provider:
    """Of ``memory``, which needs no barriers."""

    granule = 4
    nbytes = 4 * N

    def __init__(self, caching: Caching, memory: np.ndarray[Any, Any] | None = None) -> None:
        self.caching = caching
        self.memory = X.copy() if memory is None else memory

    def sync(self, offset: int, nbytes: int, mode: AccessMode, side: Side) -> None:
        pass

    def host_address(self) -> int | None:
        return int(self.memory.ctypes.data)

    def device_address(self, device: Device) -> int | None:
        return None


def tensor(provider: Provider, device: Device | str = "cpu") -> Tensor:
    return lb.from_bus_address(next(_PAGES), (N,), "float32", device=device, provider=provider, owner=provider)


def test_a_providers_mapping_is_used() -> None:
    with tensor(Provider(Caching.CACHED)).host_view("r") as a:
        np.testing.assert_array_equal(a, X)


@pytest.mark.parametrize("caching", [Caching.WRITE_COMBINED, Caching.UNCACHED])
def test_reads_past_the_caches_warn(caching: Caching) -> None:
    t = tensor(Provider(caching))
    with pytest.warns(SlowMemoryWarning, match=f"host view of Tensor.*{caching.value} memory of cpu:0.*copy it once"):
        t.host_view("r")
    s = lb.Session(on_the_cpu(), num_threads=1)
    with pytest.warns(SlowMemoryWarning, match="input 'x', used in place"):
        s.set_input_zero_copy("x", t)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        t.host_view("w")
        s.set_output_zero_copy("y", tensor(Provider(caching)))
        s.run()
        s.set_input("x", t)  # a copy, once
        tensor(Provider(Caching.CACHED)).host_view("r")


def test_arrays_say_that_they_are_not_cacheable() -> None:
    array = Dram().allocate((N,), np.float32, coherent=True, kind=PynqArray)
    assert not array.cacheable
    with pytest.warns(SlowMemoryWarning, match="uncached"):
        lb.asarray(array).host_view("r")


def test_registers_are_left_to_the_device() -> None:
    """On ARM /dev/mem maps memory as a device's: vector and unaligned accesses fault."""
    api = CachingDeviceAPI()
    device = Device(api, 0)
    t = tensor(Provider(Caching.DEVICE), device)
    for use in (lambda: t.host_view("rw").__enter__(), lambda: t.host_view("w").__enter__()):
        with pytest.raises(HostViewError, match=r"as registers.*vector and unaligned accesses fault"):
            use()
    other = lb.asarray(np.full(N, 7, np.float32)).to_device(device)
    t.copy_from(other)  # by the device
    with t.to_device(device).copy().host_view("r") as a:
        assert (a == 7).all()
    s = lb.Session(on_the_cpu(), num_threads=1)
    with pytest.raises(ZeroCopyError, match="as registers"):
        s.set_input_zero_copy("x", tensor(Provider(Caching.DEVICE)))
