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
from landbridge.device.memory_provider import Caching, MemoryProvider
from landbridge.device.protocols import HostMemory
from landbridge.devices.cma.buffer import CmaBuffer
from landbridge.devices.cma.dev_mem import dev_mem
from landbridge.devices.cma.dma_heap import dma_heaps
from landbridge.devices.cma.huge_pages import huge_pages
from landbridge.devices.cma.pagemap import is_contiguous
from landbridge.devices.cma.register_copy import register_copy
from landbridge.devices.cma.source import MemorySource
from landbridge.devices.cma.u_dma_buf import u_dma_bufs
from landbridge.devices.cma.udmabuf import Udmabuf
from landbridge.errors import DeviceError, OutOfMemoryError, ZeroCopyError
from landbridge.memory_kind import GLOBAL_SCOPE, MemoryKind, normalize_scope

_MAX_ALIGNMENT = 1 << 30


class CmaDeviceAPI(DeviceAPI):
    """A device with one instance if a source of memory is found: ``global`` is the first source, ``global.NAME`` each.

    A handle is a CmaBuffer. All of it is the host's memory, so nothing is queued and no barrier is needed between this
    device and the host; devices that use it need the memory's own barriers, those of a dma-buf or of u-dma-buf.
    ``alignment``, 1 GiB at most, is that of the host's address, and of the bus address where the source knows one: else
    a device states its own when it imports the memory. A Space's kind says that it is contiguous where its source
    promises that or pagemap proves it.
    """

    name: ClassVar[str] = "cma"
    api_version: ClassVar[int] = DEVICE_API_VERSION
    survives_fork: ClassVar[bool] = True
    contiguous_by_default: ClassVar[bool] = True

    def __init__(self, sources: Sequence[MemorySource] | None = None) -> None:
        """Make the device with ``sources``, the preferred first; None for what this machine may have."""
        candidates = sources_here() if sources is None else sources
        self._missing = {source.name: source.missing() for source in candidates}
        self._sources = {f"global.{source.name}": source for source in candidates if self._missing[source.name] is None}
        self._kinds = {scope: _kind(scope, source) for scope, source in self._sources.items()}
        if first := min(self._sources, key=lambda scope: self._sources[scope].by_name, default=None):
            self._sources[GLOBAL_SCOPE] = self._sources[first]
            self._kinds = {GLOBAL_SCOPE: replace(self._kinds[first], scope=GLOBAL_SCOPE), **self._kinds}

    def count(self) -> int:
        """Returns 1, or 0 where no source of memory was found."""
        return 1 if self._kinds else 0

    def discovery(self) -> Sequence[str]:
        """Returns a line for each source: its limit where it was found, else what was looked for and why it is
        unusable.
        """
        limits = {source.name: source.max_bytes for source in self._sources.values()}
        return [
            f"{name}: {why or ('found' if limits[name] is None else f'found, at most {limits[name]} bytes a buffer')}"
            for name, why in self._missing.items()
        ]

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        """Returns the page size; None for all other attributes."""
        return mmap.PAGESIZE if attr is DeviceAttr.PAGE_BYTES else None

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        """Returns one kind for each source that was found, and ``global``."""
        return self._kinds

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        """Returns a zeroed buffer in a file of its own, or a part of a carve-out, which is not cleared.

        Raises OutOfMemoryError, and DeviceError for scattered memory whose source promises that it is contiguous.
        """
        where = f"{self.name}:{index}"
        kind = kind_of(self._kinds, scope, where)
        check_request(nbytes, alignment, where)
        source = self._sources[kind.scope]
        if source.by_name and normalize_scope(scope) == GLOBAL_SCOPE:
            raise OutOfMemoryError(f"{where} has no memory but global.{source.name}, which is taken by its name alone")
        size = -(-max(nbytes, 1) // source.unit) * source.unit
        if alignment > _MAX_ALIGNMENT:
            raise OutOfMemoryError(f"{where}: alignment {alignment} was asked; {_MAX_ALIGNMENT} is the most there is")
        if source.max_bytes is not None and size > source.max_bytes:
            raise OutOfMemoryError(
                f"{where} {kind.scope}: {size} bytes were asked, in whole units of {source.unit}; one buffer has "
                f"{source.max_bytes} at most"
            )
        buffer = CmaBuffer(source.allocate(size, alignment), size, max(alignment, source.unit))
        if source.physically_contiguous and buffer.provider is None and is_contiguous(buffer.address, size) is False:
            buffer.close()
            raise DeviceError(
                f"{where} {kind.scope}: its source states contiguous memory and gave {size} bytes that are scattered, "
                "as /proc/self/pagemap shows; have the source state physically_contiguous=None"
            )
        granted = replace(kind, physically_contiguous=True) if _is_proved(source, buffer) else None
        return Space(Device(self, index), normalize_scope(scope), buffer, kind=granted)

    def free_data_space(self, space: Space) -> None:
        """Unmap the memory and close its file."""
        space.handle.close()

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        """Copy now, without the GIL; raises InputError when the bytes overlap without being the same.

        Memory that is mapped as registers is copied in aligned words, with the GIL.
        """
        if not is_copy_to_itself(self, src, dst, nbytes):
            copy = register_copy if _are_registers(src.space) or _are_registers(dst.space) else ctypes.memmove
            copy(_address(dst), _address(src), nbytes)
        return None

    def can_copy(self, src: Space, dst: Space) -> bool:
        """Returns whether one end is mapped as registers, which other host code does not touch, and the other is host
        memory.
        """
        if not (_are_registers(src) or _are_registers(dst)):
            return False
        others = [space for space in (src, dst) if space.device.api is not self]
        return all(space.device.memory_kind(space.scope).dlpack_device == (1, 0) for space in others)

    def host_pointer(self, space: Space) -> int:
        """Returns the address at which the first byte is mapped."""
        return int(space.handle.address)

    def export_fd(self, space: Space) -> int:
        """Returns a descriptor of the memory, its first byte at offset 0, which the caller closes. Raises
        ZeroCopyError.
        """
        if space.handle.provider is not None:
            raise ZeroCopyError(f"{space.scope} is part of a memory without a file of its own; give its bus address")
        try:
            return os.dup(space.handle.fd)
        except OSError as error:
            raise ZeroCopyError(f"the descriptor of {space} cannot be duplicated: {error}") from error

    def import_source(self, space: Space) -> DmaBuf | None:
        """Returns the file of ``space``, open for as long as that lives; None where it is a part of a larger file."""
        return None if space.handle.provider is not None else DmaBuf(space.handle.fd, 0, space.handle.nbytes)

    def memory_provider(self, space: Space) -> MemoryProvider | None:
        """Returns the barriers and the bus address of a part of a carve-out; None for other memory."""
        found: MemoryProvider | None = space.handle.provider
        return found


def _is_proved(source: MemorySource, buffer: CmaBuffer) -> bool:
    """Returns whether the memory of ``buffer`` is known to be physically contiguous although its ``source`` does not
    say so.

    It is where it lies in one page, or in several that are adjacent now, and pages of that size are not moved. False
    where the source itself answers the question, or the pages are ordinary ones, which the kernel may move.
    """
    if source.physically_contiguous is not None or source.page_bytes == mmap.PAGESIZE:
        return False  # ordinary pages may move at any time, and pagemap does not cover a driver's memory
    pages = source.page_bytes
    return buffer.nbytes <= pages or is_contiguous(buffer.address, buffer.nbytes, page_bytes=pages) is True


def _are_registers(space: Space) -> bool:
    provider = space.handle.provider if isinstance(space.handle, CmaBuffer) else None
    return provider is not None and provider.caching is Caching.DEVICE


def _address(region: Region) -> int:
    handle = region.space.handle
    if isinstance(handle, CmaBuffer):
        return handle.address + region.byte_offset
    memory = region.space.device.capability(HostMemory)
    assert memory is not None, "can_copy says that the host can address it"
    return memory.host_pointer(region.space) + region.byte_offset


def sources_here() -> Sequence[MemorySource]:
    """Returns the sources of contiguous memory that a machine may have, the preferred first; each tells whether this
    machine has it.
    """
    return [*dma_heaps(), Udmabuf(), *huge_pages(), *u_dma_bufs(), dev_mem()]


def _kind(scope: str, source: MemorySource) -> MemoryKind:
    return MemoryKind(
        scope=scope,
        host_access="read_write",
        coherent=True,
        cached=source.cached,
        pinned=source.pinned,
        physically_contiguous=source.physically_contiguous,
        alignment=source.unit,
        max_bytes=source.max_bytes,
        capacity=source.capacity,
        exportable=source.capacity is None,
        # The barriers of a dma-buf have no range, so no two tensors share one.
        allocators=("size_classes", "naive") if source.capacity is None else ("pooled", "naive"),
        by_name=source.by_name,
        dlpack_device=(1, 0),
    )
