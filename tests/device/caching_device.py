"""A device that sees memory of the host past its caches: bytes go from one to the other by barriers alone.

What the host writes stays in its cache, which is the memory of this process; ``dram`` is what devices read and write.
Lines that the host wrote may be written back at any time: ``evict`` does so for all that it was not told to clean.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, ClassVar

from landbridge.device.api import DEVICE_API_VERSION, Device, DeviceAPI, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.import_source import BusAddress, HostPointer, ImportSource
from landbridge.device.protocols import AccessMode
from landbridge.errors import ZeroCopyError
from landbridge.memory_kind import MemoryKind

LINE = 64


class CachingDeviceAPI(DeviceAPI):
    """Two instances; a handle is a host address. ``dram`` may be another one's, for devices of one board."""

    name: ClassVar[str] = "caching"
    api_version: ClassVar[int] = DEVICE_API_VERSION

    def __init__(self, dram: dict[int, int] | None = None) -> None:
        self.dram: dict[int, int] = {} if dram is None else dram
        self._arena = ctypes.create_string_buffer(1 << 22)
        self._top = ctypes.addressof(self._arena)
        self.barriers: list[tuple[str, int, int, str]] = []

    def count(self) -> int:
        return 2

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        return None

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        kind = MemoryKind("global", "read_write", coherent=False, coherence_granule=LINE, importable=True)
        return {"global": kind}

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        address = -(-self._top // alignment) * alignment  # as close together as was asked for
        self._top = address + nbytes
        return Space(Device(self, index), scope, address)

    def free_data_space(self, space: Space) -> None:
        pass

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> None:
        self.write(dst.space.handle + dst.byte_offset, self.read(src.space.handle + src.byte_offset, nbytes))

    def read(self, address: int, nbytes: int) -> bytes:
        """What the device sees."""
        return bytes(self.dram.get(byte, 0) for byte in range(address, address + nbytes))

    def write(self, address: int, content: bytes) -> None:
        """What the device does."""
        self.dram.update(zip(range(address, address + len(content)), content, strict=True))

    def host_pointer(self, space: Space) -> int:
        return int(space.handle)

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        self.barriers.append(("begin", region.space.handle + region.byte_offset, nbytes, mode))
        if mode != "w":
            address = region.space.handle + region.byte_offset
            ctypes.memmove(address, self.read(address, nbytes), nbytes)

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        self.barriers.append(("end", region.space.handle + region.byte_offset, nbytes, mode))
        if mode != "r":
            address = region.space.handle + region.byte_offset
            self.write(address, ctypes.string_at(address, nbytes))

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        match source:
            case HostPointer(address=address) | BusAddress(host_address=int(address)):
                return Space(Device(self, index), "global", address)
        raise ZeroCopyError("no address")

    def release_import(self, space: Space) -> None:
        pass


def device(api: CachingDeviceAPI, index: int = 0) -> Any:
    return Device(api, index)
