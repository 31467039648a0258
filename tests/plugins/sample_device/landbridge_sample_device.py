"""A whole device: 16 MiB of memory that lies in the host's, copies that are done on return."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from itertools import count
from threading import Lock

from landbridge.device.api import DEVICE_API_VERSION, Device, DeviceAPI, Event, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.protocols import HostMemory
from landbridge.errors import InputError, OutOfMemoryError
from landbridge.memory_kind import MemoryKind, normalize_scope

CAPACITY = 16 << 20
ALIGNMENT = 128


class SampleDeviceAPI(DeviceAPI):
    """One instance; its one scope is coherent, and the host sees it in place."""

    name = "sample"
    api_version = DEVICE_API_VERSION

    def __init__(self) -> None:
        self._lock = Lock()
        self._handles = count(1)
        self._used_bytes = 0
        self._buffers: dict[int, tuple[ctypes.Array[ctypes.c_char], int, int]] = {}
        self._kind = MemoryKind("global", "read_write", coherent=True, alignment=ALIGNMENT, capacity=CAPACITY)

    def count(self) -> int:
        return 1

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        return {DeviceAttr.PRODUCT_NAME: "sample", DeviceAttr.TOTAL_MEMORY: CAPACITY}.get(attr)

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        return {"global": self._kind}

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        if normalize_scope(scope) != "global":
            raise InputError(f"device sample has no memory scope {scope!r}; legal: global")
        align = max(alignment, ALIGNMENT)
        with self._lock:
            if nbytes > CAPACITY - self._used_bytes:
                raise OutOfMemoryError(f"sample: {nbytes} bytes requested, {self._used_bytes} of {CAPACITY} used")
            self._used_bytes += nbytes
            handle = next(self._handles)
            buffer = ctypes.create_string_buffer(nbytes + align)
            start = ctypes.addressof(buffer)
            self._buffers[handle] = (buffer, start + -start % align, nbytes)
        return Space(Device(self, index), "global", handle)

    def free_data_space(self, space: Space) -> None:
        with self._lock:
            self._used_bytes -= self._buffers.pop(space.handle)[2]

    def can_copy(self, src: Space, dst: Space) -> bool:
        return all(space.device.capability(HostMemory) is not None for space in (src, dst))

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        source, target = self._address(src), self._address(dst)
        if source != target and abs(source - target) < nbytes:
            raise InputError(f"sample: a copy of {nbytes} bytes overlaps its source; give disjoint ranges")
        ctypes.memmove(target, source, nbytes)
        return None

    def host_pointer(self, space: Space) -> int:
        return self._buffers[space.handle][1]

    def _address(self, region: Region) -> int:
        host = region.space.device.capability(HostMemory)
        if host is None:
            raise InputError(f"sample copies no memory of {region.space.device}; ask can_copy first")
        return host.host_pointer(region.space) + region.byte_offset
