"""Imports by a device that does not see what the host wrote: its barriers are as those around its own memory."""

from __future__ import annotations

import mmap
import os
from dataclasses import replace

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Region
from landbridge.device.protocols import AccessMode
from landbridge.executable.instructions import Call, LoadConstant
from landbridge.executable.parts import ModuleImage, VDevice
from landbridge.memory.coherence import mark_imported
from landbridge.memory.storage import Storage
from landbridge.targets import Target
from landbridge.tensor import Tensor
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from tests.testing.importing_device import ImportsBehindCaches
from tests.vm import programs
from tests.vm.lazy_kernels import IMAGE, N


class KernelsAndImports(ImportsBehindCaches):
    """Runs the kernels of ``lazy_kernels``; ``flushed`` are the barriers that it was called for: offset and bytes."""

    load_module = SimLazyDeviceAPI.load_module  # type: ignore[assignment]
    module_formats = None  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__(0)
        self.flushed: list[tuple[int, int, int]] = []

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        self.flushed.append((region.byte_offset, nbytes, region.space.handle.data.nbytes))
        super().end_host_access(region, nbytes, mode)


@pytest.fixture
def device() -> Device:
    return Device(KernelsAndImports(), 0)


def array(value: float, count: int = 1024) -> np.ndarray:
    made = np.frombuffer(mmap.mmap(-1, 4 * count), np.float32)
    made[:] = value
    return made


def memory_file() -> tuple[int, np.ndarray]:
    file = os.memfd_create("memory of others")
    os.ftruncate(file, 8192)
    return file, np.frombuffer(mmap.mmap(file, 8192), np.float32)


def holds(tensor: Tensor, value: float) -> bool:
    return bool((np.asarray(tensor.to_device("cpu")) == value).all())


def test_what_the_owner_wrote_before_is_seen(device):
    assert holds(lb.asarray(array(3), device=device, copy=False), 3)
    file, content = memory_file()
    content[:] = 4
    assert holds(lb.from_dma_buf(file, (1024,), "float32", device=device, offset=4096), 4)
    os.close(file)


def test_copies_of_borrowed_memory_see_what_its_owner_writes_concurrently(device):
    owner = array(1)
    tensor = lb.asarray(owner, device=device, copy=False)
    for value in (2, 3):
        owner[:] = value
        assert holds(tensor, value)


def test_the_owner_sees_what_is_copied_into_its_memory(device):
    owner = array(1)
    tensor = lb.asarray(owner, device=device, copy=False)
    tensor.copy_from(np.full(1024, 6, np.float32))
    assert (owner == 6).all()
    owner[:512] = 7
    assert (np.asarray(tensor.to_device("cpu")) == owner).all()


def test_what_the_device_wrote_is_there_when_the_import_is_gone(device):
    file, content = memory_file()
    tensor = lb.from_dma_buf(file, (1024,), "float32", device=device, offset=4096)
    tensor.copy_from(np.full(1024, 5, np.float32))
    del tensor
    assert (content[1024:] == 5).all()
    os.close(file)


def test_a_second_import_undoes_nothing_of_the_first(device):
    file, _ = memory_file()
    first, second = (lb.from_dma_buf(file, (1024,), "float32", device=device) for _ in range(2))
    first.copy_from(np.full(1024, 5, np.float32))
    third = lb.from_dma_buf(file, (1024,), "float32", device=device)
    assert holds(second, 5) and holds(third, 5) and holds(first, 5)
    with second.host_view("w") as view:
        view[:] = 9
    second.copy_from(np.full(1024, 6, np.float32))  # by the device: what the host wrote is old now, for the first too
    assert holds(first, 6) and holds(second, 6)
    with first.host_view("r") as view:
        assert (view == 6).all()
    os.close(file)


def constant_program(value: np.ndarray) -> lb.Executable:
    """``y = 2 c`` by the device, whatever x is."""
    exe = programs.executable(
        {"x": (N,)}, {"y": (N,)}, (LoadConstant(2, "c", 0), Call(0, "double", (2, 1), 1, vdevice=0)), {"c": value}
    )
    kind = {"scope": "global", "host_access": "none", "coherent": False, "coherence_granule": 64}
    target = Target({"kind": "llvm", "memory": [kind]})
    return replace(
        exe,
        vdevices=(VDevice("dev", 0, "global"),),
        modules=(ModuleImage(target.to_json(), IMAGE),),
        metadata={"on_mismatch": "error"},
    )


def test_constants_that_are_used_in_place_are_flushed(device):
    """The file's bytes may lie in caches of the host, as any that were just read."""
    weights = np.full(N, 3, np.float32)
    weights.flags.writeable = False
    with lb.ledger() as moves:
        session = lb.Session(constant_program(weights), devices={"dev": device})
    assert "constants:bind" not in {move.cause for move in moves}
    (result,) = session(np.zeros(N, np.float32))
    assert holds(result, 6)


def test_barriers_end_with_the_memory_that_was_imported(device):
    """What kernels only read may end within a granule: no byte past it is named."""
    owner = np.zeros(1024, np.float32)[:100]
    owner.flags.writeable = False
    tensor = lb.asarray(owner, device=device, copy=False)
    assert holds(tensor, 0)
    assert device.api.flushed and all(start + nbytes <= size for start, nbytes, size in device.api.flushed)


def test_arrays_of_no_bytes_are_imported(device):
    """No barrier for them reaches anybody's bytes, wherever they begin."""
    assert lb.asarray(np.zeros((0, 3), np.float32), device=device, copy=False).shape == (0, 3)


def test_each_part_counts_as_the_owners_when_it_comes(device):
    """A second Storage may look at more of what is imported already; what both look at was flushed for the first."""
    whole = array(3)
    first = lb.asarray(whole[:512], device=device, copy=False)
    assert holds(first, 3)
    space = first.storage.live_region.space
    domain = first.storage.domain
    more = Storage(Region(space), first.storage.kind, 4096, owner=whole, within=first.storage.part())
    mark_imported(more)
    assert more.domain is domain
    assert domain.by_host.within(0, 4096) == [(2048, 4096)]
