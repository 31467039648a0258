"""An honest device of one scope, behind the host's caches, that imports memory of the host in place."""

from __future__ import annotations

import ctypes
import mmap
import os
from dataclasses import replace
from typing import ClassVar

import numpy as np

from landbridge.device.api import Device, Region, Space
from landbridge.device.import_source import DmaBuf, HostPointer, ImportSource
from landbridge.device.protocols import AccessMode
from landbridge.errors import ZeroCopyError
from landbridge.testing.board_memory import CachedBlock
from landbridge.testing.lazy_instance import LazyBlock, LazyInstance
from tests.testing.mutants import Correct

_WINDOW = 1 << 26  # bytes


class ImportedBlock(CachedBlock):
    """Memory of others: ``host`` are their bytes, ``data`` is what the device sees of them."""

    def __init__(self, instance: LazyInstance, host: np.ndarray, data: np.ndarray) -> None:
        super().__init__(instance, "global", 0, 1)
        self.host, self.data = host, data
        self.address, self.host_address = int(data.ctypes.data), int(host.ctypes.data)


class ImportsBehindCaches(Correct):
    """Imports memory of the host and files; what either side writes there reaches the other by barriers alone."""

    alloc_shared_space = export_fd = import_source = None  # type: ignore[assignment]

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(seed)
        self._kinds = {"global": replace(self._kinds["cached"], scope="global", offset_alignment=1, alignment=64)}
        #: What the device sees of the host's memory, a window after the other, and of files.
        self._seen: dict[tuple[object, int], np.ndarray] = {}

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        space = super().alloc_data_space(index, nbytes, alignment, scope, type_hint)
        block: LazyBlock = space.handle
        self._blocks.pop(block)
        return replace(space, handle=CachedBlock(block.instance, "global", nbytes, max(alignment, 64)))

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        instance = self._live(index)
        match source:
            case HostPointer(address=begin, nbytes=nbytes):
                key: object = "memory"
                host = np.frombuffer((ctypes.c_ubyte * nbytes).from_address(begin), np.uint8)
            case DmaBuf(fd=fd, offset=begin, nbytes=nbytes) if begin % mmap.PAGESIZE == 0:
                try:
                    status = os.fstat(fd)
                    host = np.frombuffer(mmap.mmap(fd, nbytes, offset=begin), np.uint8)
                except (OSError, ValueError) as error:
                    raise ZeroCopyError(f"{self.name} cannot map {source}: {error}") from error
                key = status.st_dev, status.st_ino
            case _:
                raise ZeroCopyError(f"{self.name} imports no {source}")
        window, start = divmod(begin, _WINDOW)
        if start + nbytes > _WINDOW:
            raise ZeroCopyError(f"{self.name} imports what lies between two multiples of {_WINDOW}, not {source}")
        seen = self._seen.setdefault((key, window), np.zeros(_WINDOW, np.uint8))
        return Space(Device(self, index), "global", ImportedBlock(instance, host, seen[start : start + nbytes]))

    def release_import(self, space: Space) -> None:
        self._finish(space.handle)


class ForgetsImports(ImportsBehindCaches):
    """end_host_access is for allocations alone: what the owner of an import wrote stays in the host's caches."""

    caught_by: ClassVar[str] = "test_import_memory"

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        if not isinstance(region.space.handle, ImportedBlock):
            super().end_host_access(region, nbytes, mode)
