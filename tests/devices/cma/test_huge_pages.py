"""Huge pages of this kernel, where its administrator reserved some; of an emulated one: ``tests/emulated``."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator

import numpy as np
import pytest

import landbridge as lb
from landbridge.device import registry
from landbridge.device.api import Device
from landbridge.devices.cma import CmaDeviceAPI
from landbridge.devices.cma.huge_pages import POOLS, HugePages
from landbridge.devices.cma.pagemap import is_contiguous
from landbridge.memory.allocators.keepers import trim
from landbridge.testing.memory_check import check_memory

PAGE = 2 << 20


class Huge(CmaDeviceAPI):
    name = "huge"


@pytest.fixture(params=[PAGE, 1 << 30], ids=["2 MiB", "1 GiB"])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    source = HugePages(request.param)
    pool = POOLS / f"hugepages-{source.unit >> 10}kB"
    free = int((pool / "free_hugepages").read_text()) if pool.is_dir() else 0
    if free < 2:
        pytest.skip(f"{pool}: {free} pages are free, 2 are needed; the administrator writes nr_hugepages")
    registry.register(Huge([source]))
    yield registry.device("huge")
    trim(registry.device("huge"))
    registry.unregister("huge")


@pytest.mark.parametrize("alignment", [1, 64, 4096, PAGE, 1 << 30])
def test_alignment(device: Device, alignment: int) -> None:
    tensor = lb.empty((1, 3, 64, 64), dtype="float32", device=device, alignment=alignment)
    assert tensor.data_address % max(alignment, device.memory_kind().alignment) == 0


def test_one_page_is_contiguous(device: Device) -> None:
    tensor = lb.empty((PAGE,), dtype="uint8", device=device)
    assert tensor.storage.kind.physically_contiguous is True
    assert not tensor.storage.kind.pinned
    assert is_contiguous(tensor.data_address, tensor.nbytes) in (True, None)  # who may not look does not know


def test_several_pages_are_what_pagemap_says(device: Device) -> None:
    tensor = lb.empty((device.memory_kind().alignment + 1,), dtype="uint8", device=device)
    pages = device.memory_kind().alignment
    proof = is_contiguous(tensor.data_address, tensor.nbytes, page_bytes=pages)
    assert tensor.storage.kind.physically_contiguous is (True if proof else None)


def test_a_process_uses_it_while_this_one_has_no_rights_to_its_pages(device: Device) -> None:
    """A hidden copy would fault, here or there."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    tensor = lb.empty((1, 3, 64, 64), dtype="float32", device=device)
    with tensor.host_view("w") as view:
        view[...] = 3
    fd, offset = lb.export_fd(tensor)
    whole = device.memory_kind().alignment
    assert libc.mprotect(tensor.data_address, whole, 0) == 0
    child = os.fork()
    if not child:
        try:
            there = lb.from_dma_buf(fd, tensor.shape, "float32", device="cpu", offset=offset)
            with there.host_view("rw") as view:
                view[...] = -view
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert libc.mprotect(tensor.data_address, whole, mmap.PROT_READ | mmap.PROT_WRITE) == 0
    os.close(fd)
    with tensor.host_view("r") as view:
        np.testing.assert_array_equal(view, np.full(tensor.shape, -3, np.float32))


def test_more_pages_than_there_are(device: Device) -> None:
    most = device.memory_kind().max_bytes
    assert most is not None
    held = []
    with pytest.raises(lb.OutOfMemoryError, match="nr_hugepages says how many there are"):
        for _ in range(most // PAGE + 1):
            held.append(lb.empty((PAGE,), dtype="uint8", device=device))
    assert held


def test_the_check_of_devices(device: Device) -> None:
    findings = list(check_memory(device))
    assert {finding.subject for finding in findings} == {
        *("allocated", "device's address", "host's address", "contiguous", "mapped twice")
    }
    assert not [finding for finding in findings if finding.failed]
