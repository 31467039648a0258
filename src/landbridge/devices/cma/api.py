"""CmaDeviceAPI: memory that CPU kernels use in place and other devices import by its file descriptor."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from landbridge.device.api import DEVICE_API_VERSION, Device, DeviceAPI, Event, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.checks import check_request, is_copy_to_itself, kind_of
from landbridge.device.import_source import DmaBuf
from landbridge.devices.cma.buffer import Buffer
from landbridge.devices.cma.dma_heap import dma_heaps
from landbridge.devices.cma.huge_pages import huge_pages
from landbridge.devices.cma.source import MemorySource
from landbridge.devices.cma.udmabuf import Udmabuf
from landbridge.errors import OutOfMemoryError, ZeroCopyError
from landbridge.memory_kind import GLOBAL_SCOPE, MemoryKind, normalize_scope

_MAX_ALIGNMENT = 1 << 30


class CmaDeviceAPI(DeviceAPI):
    """One instance where a source of memory is found: ``global`` is the first one's, ``global.NAME`` each one's.

    A handle is a Buffer. All of it is the host's memory, so that nothing is queued and no barrier is needed between
    this device and the host; those of a dma-buf, for devices that import it, are the memory's own. ``alignment``, 1 GiB
    at most, is that of the host's address: what a device's is, that device says when it imports the memory.
    """

    name: ClassVar[str] = "cma"
    api_version: ClassVar[int] = DEVICE_API_VERSION
    survives_fork: ClassVar[bool] = True

    def __init__(self, sources: Sequence[MemorySource] | None = None) -> None:
        """``sources``: the preferred first; None for what this machine may have."""
        asked = _sources_here() if sources is None else sources
        self._missing = {source.name: source.missing() for source in asked}
        self._sources = {f"global.{source.name}": source for source in asked if self._missing[source.name] is None}
        self._kinds = {scope: _kind(scope, source) for scope, source in self._sources.items()}
        if first := next(iter(self._sources), None):
            self._sources[GLOBAL_SCOPE] = self._sources[first]
            self._kinds = {GLOBAL_SCOPE: replace(self._kinds[first], scope=GLOBAL_SCOPE), **self._kinds}

    def count(self) -> int:
        """1, or 0 where no source of memory was found."""
        return 1 if self._kinds else 0

    def discovery(self) -> Sequence[str]:
        """Each source: found, or what was looked for and why it is not."""
        return [f"{name}: {why or 'found'}" for name, why in self._missing.items()]

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        """The page size; nothing else applies."""
        return mmap.PAGESIZE if attr is DeviceAttr.PAGE_BYTES else None

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        """One for each source that was found, and ``global``."""
        return self._kinds

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        """A buffer of zeros, in a file of its own."""
        where = f"{self.name}:{index}"
        kind = kind_of(self._kinds, scope, where)
        check_request(nbytes, alignment, where)
        source = self._sources[kind.scope]
        size = -(-max(nbytes, 1) // source.unit) * source.unit
        if alignment > _MAX_ALIGNMENT:
            raise OutOfMemoryError(f"{where}: alignment {alignment} was asked; {_MAX_ALIGNMENT} is the most there is")
        if source.max_bytes is not None and size > source.max_bytes:
            raise OutOfMemoryError(
                f"{where} {kind.scope}: {size} bytes were asked, in whole units of {source.unit}; one buffer has "
                f"{source.max_bytes} at most"
            )
        buffer = Buffer(source.allocate(size), size, max(alignment, source.unit))
        return Space(Device(self, index), normalize_scope(scope), buffer)

    def free_data_space(self, space: Space) -> None:
        """Unmap it and close its file."""
        space.handle.close()

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        """Copy now, without the GIL; raises InputError when the bytes overlap without being the same."""
        if not is_copy_to_itself(self, src, dst, nbytes):
            target, source = (end.space.handle.address + end.byte_offset for end in (dst, src))
            ctypes.memmove(target, source, nbytes)
        return None

    def host_pointer(self, space: Space) -> int:
        """Where its first byte is mapped."""
        return int(space.handle.address)

    def export_fd(self, space: Space) -> int:
        """A file descriptor of it, its first byte at offset 0; the caller closes it. Raises ZeroCopyError."""
        try:
            return os.dup(space.handle.fd)
        except OSError as error:
            raise ZeroCopyError(f"the descriptor of {space} cannot be duplicated: {error}") from error

    def import_source(self, space: Space) -> DmaBuf:
        """Its file, open for as long as ``space`` lives."""
        return DmaBuf(space.handle.fd, 0, space.handle.nbytes)


def _sources_here() -> Sequence[MemorySource]:
    return [*dma_heaps(), Udmabuf(), *huge_pages()]


def _kind(scope: str, source: MemorySource) -> MemoryKind:
    return MemoryKind(
        scope=scope,
        host_access="read_write",
        coherent=True,
        cached=source.cached,
        physically_contiguous=source.physically_contiguous,
        alignment=source.unit,
        max_bytes=source.max_bytes,
        exportable=True,
        # The barriers of a dma-buf have no range: no two tensors share one.
        allocators=("naive",),
        dlpack_device=(1, 0),
    )
