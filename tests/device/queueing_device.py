"""A device in host memory that behaves as badly as a real one may.

Scope ``global`` cannot be seen by the host, and its copies happen only when their event is waited for. Scope
``shared`` is host-visible and not coherent: the host works on a shadow that only barriers bring up to date.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from itertools import count
from typing import ClassVar

from landbridge.device.api import DEVICE_API_VERSION, Device, DeviceAPI, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.protocols import AccessMode
from landbridge.memory_kind import MemoryKind


class QueuedCopy:
    """An event: the copy it stands for, and those queued before it, are done when somebody waits."""

    def __init__(self, api: QueueingDeviceAPI, src: Region, dst: Region, nbytes: int) -> None:
        self._work = (api, src, dst, nbytes)
        self.done = False
        api.queued.append(self)

    def query(self) -> bool:
        return self.done

    def synchronize(self, timeout: float | None = None) -> bool:
        api = self._work[0]
        while not self.done:
            api.queued.pop(0).run()
        return True

    def run(self) -> None:
        api, src, dst, nbytes = self._work
        ctypes.memmove(api.place(dst), api.place(src), nbytes)
        self.done = True


def aligned_buffer(nbytes: int, alignment: int) -> ctypes.Array[ctypes.c_char]:
    """``nbytes`` zeros at a multiple of ``alignment``."""
    whole = ctypes.create_string_buffer(nbytes + alignment)
    return (ctypes.c_char * nbytes).from_buffer(whole, -ctypes.addressof(whole) % alignment)


class QueueingDeviceAPI(DeviceAPI):
    """Two instances; ``can_copy`` reaches host memory."""

    name: ClassVar[str] = "queueing"
    api_version: ClassVar[int] = DEVICE_API_VERSION

    def __init__(self) -> None:
        self._handles = count(1)
        self.buffers: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self.shadows: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self.barriers: list[tuple[str, int, int, str]] = []
        self.copies = 0
        self.queued: list[QueuedCopy] = []

    def count(self) -> int:
        return 2

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        return None

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        return {
            "global": MemoryKind("global", "none", coherent=False, alignment=256, coherence_granule=64),
            "shared": MemoryKind(
                "shared", "read_write", coherent=False, alignment=256, coherence_granule=64, max_bytes=1 << 20
            ),
        }

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        handle = next(self._handles)
        aligned = max(alignment, 256)
        self.buffers[handle] = aligned_buffer(nbytes, aligned)
        if scope == "shared":
            self.shadows[handle] = aligned_buffer(nbytes, aligned)
            self.shadows[handle].raw = b"\xee" * nbytes
        return Space(Device(self, index), scope, handle)

    def free_data_space(self, space: Space) -> None:
        del self.buffers[space.handle]
        self.shadows.pop(space.handle, None)

    def can_copy(self, src: Space, dst: Space) -> bool:
        return all(space.device.api is self or space.device.name == "cpu" for space in (src, dst))

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> QueuedCopy:
        self.copies += 1
        return QueuedCopy(self, src, dst, nbytes)

    def host_pointer(self, space: Space) -> int:
        return ctypes.addressof(self.shadows[space.handle])

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        self.barriers.append(("begin", region.byte_offset, nbytes, mode))
        if mode != "w":
            shadow, buffer = self.shadows[region.space.handle], self.buffers[region.space.handle]
            begin, end = region.byte_offset, region.byte_offset + nbytes
            shadow[begin:end] = buffer[begin:end]

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        self.barriers.append(("end", region.byte_offset, nbytes, mode))
        if mode != "r":
            shadow, buffer = self.shadows[region.space.handle], self.buffers[region.space.handle]
            begin, end = region.byte_offset, region.byte_offset + nbytes
            buffer[begin:end] = shadow[begin:end]

    def place(self, region: Region) -> int:
        space = region.space
        if space.device.api is self:
            return ctypes.addressof(self.buffers[space.handle]) + region.byte_offset
        return int(space.handle) + region.byte_offset
