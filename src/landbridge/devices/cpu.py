"""CpuDeviceAPI: the host as a device, with memory from mmap, pinned on request, and copies by memmove."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from landbridge.device.api import DEVICE_API_VERSION, Device, DeviceAPI, Event, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.checks import kind_of
from landbridge.device.import_source import BusAddress, DmaBuf, HostPointer, ImportSource
from landbridge.device.protocols import AccessMode
from landbridge.devices.mapped_file import MappedFile
from landbridge.devices.pinned_pages import PinnedPages, kernel_pins
from landbridge.errors import InputError, OutOfMemoryError, ZeroCopyError
from landbridge.executable.abi import STORAGE_ALIGNMENT
from landbridge.memory_kind import GLOBAL_SCOPE, PINNED_SCOPE, MemoryKind, normalize_scope

_HUGE_PAGE_BYTES = 2 << 20
#: Mappings of this size may be reserved for the largest of many sizes: a run of small ones touches their first bytes.
_RESERVED_BYTES = 64 << 20
_MAP_FIXED = 0x10  # of Linux, on all but one architecture that Python runs on
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


class CpuDeviceAPI(DeviceAPI):
    """One CPU with all its cores. A handle is an address; copies are done on return; there are no streams.

    Allocations are private mappings aligned to pages, of huge pages from 2 MiB on. Shared ones are of an in-memory file
    (``MAP_SHARED``), which other processes and devices map through ``export_fd``; kernels seldom allow huge pages
    there, so the first touch of a large one takes ten times longer. Those of ``global.pinned`` stay in place for as
    long as the process that made them has them.
    """

    name: ClassVar[str] = "cpu"
    device_type: ClassVar[int | None] = 1
    api_version: ClassVar[int] = DEVICE_API_VERSION
    survives_fork: ClassVar[bool] = True

    def __init__(self) -> None:
        self._mappings: dict[int, mmap.mmap] = {}
        self._files: dict[int, int] = {}
        self._imported: dict[int, MappedFile] = {}
        self._pins: dict[int, PinnedPages] = {}
        ordinary = MemoryKind(
            scope=GLOBAL_SCOPE,
            host_access="read_write",
            coherent=True,
            alignment=STORAGE_ALIGNMENT,
            capacity=_memory_bytes("MemTotal"),
            importable=True,
            exportable=hasattr(os, "memfd_create"),
            dlpack_device=(1, 0),
        )
        pinned = replace(
            ordinary,
            scope=PINNED_SCOPE,
            resident=True,
            pinned=kernel_pins(),
            alignment=mmap.PAGESIZE,
            size_multiple=mmap.PAGESIZE,
            importable=False,
            allocators=("naive", "pooled"),  # as little as is needed, as systems allow little
            by_name=True,
        )
        self._kinds = {GLOBAL_SCOPE: ordinary, PINNED_SCOPE: pinned}

    def count(self) -> int:
        """Returns 1."""
        return 1

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        """Returns the value from the kernel's own tables; None for what they do not have."""
        read = _ATTRS.get(attr)
        return read() if read else None

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        """Returns the kinds ``"global"`` and ``"global.pinned"``.

        ``"global"`` is coherent host memory, used in place whoever allocated it. Pages of ``"global.pinned"`` stay in
        memory, and in place where this process may have the kernel pin them.
        """
        return self._kinds

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        """Map ``nbytes`` zeroed bytes; for alignments above a page, more is mapped."""
        kind_of(self._kinds, scope, f"cpu:{index}")
        huge = nbytes >= _HUGE_PAGE_BYTES
        align = max(alignment, _HUGE_PAGE_BYTES if huge else mmap.PAGESIZE)
        return self._map(index, -1, nbytes, align, scope, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def alloc_shared_space(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        """Map ``nbytes`` zeroed bytes that other processes and devices can map too."""
        kind_of(self._kinds, scope, f"cpu:{index}")
        align = max(alignment, mmap.PAGESIZE)
        if not hasattr(os, "memfd_create"):
            return self._map(index, -1, nbytes, align, scope, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
        file = os.memfd_create("landbridge", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(file, max(nbytes, 1))
            # Sealed, so that a process it is exported to cannot truncate it.
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
            space = self._map(index, file, nbytes, align, scope, mmap.MAP_SHARED)
        except (OSError, OverflowError, OutOfMemoryError) as error:
            os.close(file)
            raise OutOfMemoryError(f"the kernel refused to map {nbytes} shared bytes: {error}") from error
        self._files[space.handle] = file
        return space

    def free_data_space(self, space: Space) -> None:
        """Unmap the pages."""
        if (pages := self._pins.pop(space.handle, None)) is not None:
            pages.close()
        self._mappings.pop(space.handle).close()
        if (file := self._files.pop(space.handle, None)) is not None:
            os.close(file)

    def export_fd(self, space: Space) -> int:
        """Returns a descriptor of shared memory, its first byte at offset 0; the caller closes it."""
        file = self._files.get(space.handle)
        if file is None:
            raise ZeroCopyError(
                f"the memory at {space.handle:#x} was not made to be shared; allocate it with "
                "lb.empty(..., host_access='read_write')"
            )
        return os.dup(file)

    def _map(self, index: int, file: int, nbytes: int, align: int, scope: str, flags: int) -> Space:
        """Returns a mapping of ``nbytes`` bytes at a multiple of ``align``, which may be more than a page."""
        is_later = file >= 0 and align > mmap.PAGESIZE  # so that the file begins at the address, as others expect
        try:
            mapping = mmap.mmap(
                -1 if is_later else file,
                max(nbytes, 1) + align - mmap.PAGESIZE,
                flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS if is_later else flags,
            )
        except (OSError, OverflowError, ValueError) as error:
            raise OutOfMemoryError(f"the kernel refused to map {nbytes} bytes: {error}") from error
        start = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
        address = -(-start // align) * align
        if is_later:
            _map_over(address, max(nbytes, 1), file)
        if nbytes >= _HUGE_PAGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
            # Not at the end: a touch of its first byte would take 2 MiB where a page is enough. Nor at the beginning of
            # what may be reserved, also where the system gives huge pages to all.
            offset, first = address - start, _HUGE_PAGE_BYTES if nbytes >= _RESERVED_BYTES else 0
            if first:
                mapping.madvise(mmap.MADV_NOHUGEPAGE, offset, first)
            mapping.madvise(mmap.MADV_HUGEPAGE, offset + first, nbytes // _HUGE_PAGE_BYTES * _HUGE_PAGE_BYTES - first)
        if scope == PINNED_SCOPE:
            try:
                self._pins[address] = PinnedPages(address, -(-max(nbytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE)
            except OutOfMemoryError as error:
                mapping.close()
                raise OutOfMemoryError(f"cpu:{index} {scope}: {error}") from error
        self._mappings[address] = mapping
        return Space(Device(self, index), normalize_scope(scope), address)

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        """Copy now, without the GIL; raises InputError when the bytes overlap without being the same."""
        source, target = src.space.handle + src.byte_offset, dst.space.handle + dst.byte_offset
        if source != target and abs(source - target) < nbytes:
            raise InputError(
                f"cpu: a copy of {nbytes} bytes from {source:#x} to {target:#x} overlaps; give disjoint ranges"
            )
        ctypes.memmove(target, source, nbytes)
        return None

    def host_pointer(self, space: Space) -> int:
        """Returns the address of ``space``."""
        return int(space.handle)

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        """Import memory in place that this process maps already, or maps now by its file descriptor.

        Raises ZeroCopyError for what it cannot map.
        """
        match source:
            case HostPointer(address=address) | BusAddress(host_address=int(address)):
                if (known := self._imported.get(address)) is not None:
                    known.users += 1
                return Space(Device(self, index), GLOBAL_SCOPE, address)
            case DmaBuf():
                try:
                    mapped = MappedFile(source, access)
                except ZeroCopyError as error:
                    raise ZeroCopyError(f"cpu:{index} cannot use {source} in place: {error}") from error
                self._imported[mapped.address] = mapped
                return Space(Device(self, index), GLOBAL_SCOPE, mapped.address)
        raise ZeroCopyError(
            f"cpu:{index} cannot use {source} in place: it has no address in this process; map it and import "
            "a HostPointer"
        )

    def release_import(self, space: Space) -> None:
        """Unmap what was mapped for the import; the owner keeps the memory."""
        if (mapped := self._imported.get(space.handle)) is not None:
            mapped.release()
            if not mapped.users:
                del self._imported[space.handle]


def _map_over(address: int, nbytes: int, file: int) -> None:
    """Map ``nbytes`` bytes of ``file`` over the pages from ``address`` on, which a mapping of ours has."""
    map_at = ctypes.CDLL(None, use_errno=True).mmap
    map_at.restype = ctypes.c_void_p
    map_at.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    if map_at(address, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _MAP_FIXED, file, 0) != address:
        reason = os.strerror(ctypes.get_errno())
        raise OutOfMemoryError(f"the kernel refused to map {nbytes} bytes of a file at {address:#x}: {reason}")


def _memory_bytes(key: str) -> int | None:
    """Returns ``key`` of /proc/meminfo in bytes; None where the kernel has no such table."""
    match = re.search(rf"^{key}:\s+(\d+) kB", _text("/proc/meminfo"), re.MULTILINE)
    return int(match[1]) << 10 if match else None


def _cpuinfo(key: str) -> str | None:
    match = re.search(rf"^{key}\s*:\s*(.+)$", _text("/proc/cpuinfo"), re.MULTILINE)
    return match[1].strip() if match else None


def _clock_hz() -> int | None:
    limit = _text("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").strip()
    if limit:
        return int(limit) * 1000
    current = _cpuinfo("cpu MHz")
    return int(float(current) * 1e6) if current else None


def _cache_bytes(level: str, file: str = "size") -> int | None:
    for index in sorted(_CACHES.glob("index*")) if _CACHES.is_dir() else ():
        if _text(index / "level").strip() == level and _text(index / "type").strip() != "Instruction":
            match = re.fullmatch(r"(\d+)([KM]?)", _text(index / file).strip())
            return int(match[1]) << {"": 0, "K": 10, "M": 20}[match[2]] if match else None
    return None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _features() -> tuple[str, ...] | None:
    flags = _cpuinfo("flags") or _cpuinfo("Features")
    return tuple(flags.split()) if flags else None


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


_ATTRS: dict[DeviceAttr, Callable[[], object | None]] = {
    DeviceAttr.PRODUCT_NAME: lambda: _cpuinfo("model name") or os.uname().machine,
    DeviceAttr.VENDOR: lambda: _cpuinfo("vendor_id"),
    DeviceAttr.DRIVER_VERSION: lambda: os.uname().release,
    DeviceAttr.COMPUTE_UNITS: _cores,
    DeviceAttr.MAX_CLOCK_HZ: _clock_hz,
    DeviceAttr.TOTAL_MEMORY: lambda: _memory_bytes("MemTotal"),
    DeviceAttr.AVAILABLE_MEMORY: lambda: _memory_bytes("MemAvailable"),
    DeviceAttr.PAGE_BYTES: lambda: mmap.PAGESIZE,
    DeviceAttr.CACHE_LINE_BYTES: lambda: _cache_bytes("1", "coherency_line_size"),
    DeviceAttr.L1_DATA_BYTES: lambda: _cache_bytes("1"),
    DeviceAttr.L2_BYTES: lambda: _cache_bytes("2"),
    DeviceAttr.L3_BYTES: lambda: _cache_bytes("3"),
    DeviceAttr.FEATURES: _features,
}
