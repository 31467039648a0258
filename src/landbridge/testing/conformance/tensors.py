"""Tests of tensors on the device, as a user handles them."""

from __future__ import annotations

import ctypes
from itertools import count
from typing import Any, cast

import numpy as np

import landbridge as lb
from landbridge.device.api import Region
from landbridge.device.import_source import HostPointer
from landbridge.device.protocols import MemoryImport
from landbridge.device.registry import device_type
from landbridge.dtypes import has_numpy_dtype
from landbridge.errors import (
    CopyForbiddenError,
    InputError,
    StorageInUseError,
    UseAfterFreeError,
    ZeroCopyError,
)
from landbridge.memory.borrowed import host_device
from landbridge.tensor import Tensor
from landbridge.testing.conformance.base import ConformanceCase, expect, expect_raises, pattern

_serial = count(1)


def _fresh_values() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Returns numbers that no test used before, so that reused memory cannot pass for a finished copy."""
    return np.arange(4096, dtype=np.float32) + 4096 * (next(_serial) % 1024)


class TensorConformance(ConformanceCase):
    """Tests Storage, Tensor and exchange with other libraries."""

    def test_there_and_back(self) -> None:
        """t.to_device(device): every dtype and shape comes back as it went."""
        for dtype in filter(has_numpy_dtype, ("float32", "float16", "bfloat16", "int64", "uint8", "bool")):
            for shape in ((), (3,), (2, 3, 5), (0, 4)):
                values = (np.arange(int(np.prod(shape))) % 2).reshape(shape).astype(np.uint8)
                sent = lb.asarray(values, dtype=dtype)
                back = np.asarray(lb.asarray(sent, device=self.device).to_device("cpu"))
                expect(back.shape == shape, f"{dtype}{shape} came back as {back.shape}")
                expect((back.astype(np.uint8) == values).all(), f"{dtype}{shape} came back with other values")

    def test_a_by_value_source_may_be_overwritten(self) -> None:
        """A by-value host source may be overwritten by its owner as soon as the user-level call returns."""
        values = _fresh_values()
        source = values.copy()
        there = lb.asarray(source, device=self.device, copy=True)
        source[:] = -1
        expect((self._back(there) == values).all(), "lb.asarray read the source after it had returned")
        owned = lb.empty((4096,), dtype="float32", device="cpu")
        view = np.asarray(owned)
        view[:] = values
        there = lb.asarray(owned, device=self.device, copy=True)
        view[:] = -1
        expect((self._back(there) == values).all(), "the copy read host memory of ours after the call had returned")

    def test_free_waits_for_the_last_use(self) -> None:
        """free_data_space / free_workspace are called only after the last queued use."""
        values = _fresh_values()
        there = lb.asarray(values, device=self.device, copy=True)
        twin = there.copy()
        there.storage.free()  # while the copy is queued
        third = twin.copy()
        del there, twin
        expect((self._back(third) == values).all(), "a queued copy lost its source")

    def test_use_after_free(self) -> None:
        """Landbridge objects raise after free."""
        tensor = lb.empty((8,), dtype="float32", device=self.device)
        tensor.storage.free()
        expect_raises(UseAfterFreeError, tensor.copy, "a copy of a freed tensor")

    def test_free_with_an_export(self) -> None:
        """While any export of host-visible bytes lives, freeing is deferred; an explicit free() then raises
        StorageInUseError naming the holders."""
        kind = self.host_kind()
        tensor = lb.empty((8,), dtype="float32", device=self.device, scope=kind.scope)
        view = tensor.host_view("rw")
        with view as array:
            expect_raises(StorageInUseError, tensor.storage.free, "free() under an open view")
            array[:] = 1
        del array
        part = np.asarray(view.tensor)[2:]
        expect_raises(StorageInUseError, tensor.storage.free, "free() while a slice lives")
        del tensor, view
        expect(part.tolist() == [1] * 6, "the bytes of a slice were freed")

    def test_to_the_same_device(self) -> None:
        """t.to_device(device): no copy where the tensor is there already."""
        tensor = lb.empty((8,), dtype="float32", device=self.device)
        expect(tensor.to_device(self.device) is tensor, "to_device to the same device made another tensor")

    def test_no_silent_copy(self) -> None:
        """Every byte the runtime moves lands in the ledger; no_copies() turns a copy into an error."""
        tensor = lb.asarray(np.arange(8, dtype=np.int32), device=self.device, copy=True)
        with lb.ledger() as moves:
            tensor.copy()
        expect(moves.total_bytes == 32, f"a copy of 32 bytes shows {moves.total_bytes} in the ledger")
        with lb.no_copies():
            expect_raises(CopyForbiddenError, tensor.copy, "a copy inside no_copies()")

    def test_asarray_without_a_copy(self) -> None:
        """copy=False raises ZeroCopyError, or is the same memory."""
        if self.device == host_device():
            self.skip("is the host: an array is there already")
        array = np.arange(4096, dtype=np.int32)
        try:
            with lb.no_copies():
                there = lb.asarray(array, device=self.device, copy=False)
        except ZeroCopyError:
            return
        expect(there.device == self.device, f"the tensor is on {there.device}")
        with there.host_view("rw") as view:
            view += 1
        expect(array[:3].tolist() == [1, 2, 3], "asarray(copy=False) to another device copied")
        expect(self._back(there)[:3].tolist() == [1, 2, 3], "the device does not see the memory that was imported")

    def test_views_stay_inside(self) -> None:
        """Sizes are checked for overflow and sign before any device sees them."""
        storage = lb.empty((8,), dtype="float32", device=self.device).storage
        for shape, offset in (((9,), 0), ((8,), 4), ((1,), -4)):
            call = lambda shape=shape, offset=offset: Tensor(storage, "float32", shape, None, offset)  # noqa: E731
            expect_raises(InputError, call, f"a view of {shape} at byte {offset} of 32")
        expect_raises(InputError, lambda: lb.empty((-1,), dtype="float32", device=self.device), "a negative extent")
        expect_raises(InputError, lambda: lb.empty((2**62, 8), dtype="int64", device=self.device), "an overflow")

    def test_dlpack_device_of_a_tensor(self) -> None:
        """DLPack 1.x: device type and index are the device's own, or the kind's."""
        tensor = lb.empty((8,), dtype="float32", device=self.device)
        wanted = self.device.memory_kind().dlpack_device or (device_type(self.api), self.device.index)
        expect(
            tensor.__dlpack_device__() == wanted, f"__dlpack_device__() is {tensor.__dlpack_device__()}, not {wanted}"
        )

    def test_coherent_memory_as_host_dlpack(self) -> None:
        """dl_device=(kDLCPU, 0) exports coherent host memory in place."""
        kind = self.host_kind()
        if not kind.coherent:
            self.skip("has no coherent host memory")
        tensor = lb.empty((8,), dtype="float32", device=self.device, scope=kind.scope)
        seen = np.from_dlpack(cast("Any", _OnHost(tensor)))
        with tensor.host_view("rw") as a:
            a[:] = 5
        expect(seen.tolist() == [5] * 8, "the export is not over the tensor's own bytes")

    def test_import_memory(self) -> None:
        """import_memory(index, source, access) -> Space, release_import(space): memory of others, in place."""
        importer = self.ability(MemoryImport)
        host = self.host(pattern(4096, 1))
        address = self.host_address(host)
        if not any(kind.importable for kind in self.device.memory_kinds.values()):
            call = lambda: importer.import_memory(self.device.index, HostPointer(address, 4096), "rw")  # noqa: E731
            expect_raises(ZeroCopyError, call, "an import by a device whose kinds are not importable")
            return
        try:
            space = importer.import_memory(self.device.index, HostPointer(address, 4096), "rw")
        except ZeroCopyError:
            self.skip("imports other memory than the host's")
        target = self.alloc(4096)
        with self.owner_writes(space, 4096):
            ctypes.memmove(address, pattern(4096, 8), 4096)
        self.wait(self.copy(Region(space), Region(target), 4096))
        expect(self.read(target, 4096) == pattern(4096, 8), "the device does not see what the owner wrote")
        importer.release_import(space)
        expect(ctypes.string_at(address, 4096) == pattern(4096, 8), "releasing an import changed the owner's bytes")

    def _back(self, tensor: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return np.asarray(tensor.to_device("cpu"))


class _OnHost:
    """A producer of capsules that ``tensor`` exports for the host, in the version that the consumer asks for."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None, **request: object) -> object:
        return self._tensor.__dlpack__(max_version=max_version, dl_device=(1, 0))

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)
