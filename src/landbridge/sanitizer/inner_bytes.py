"""InnerBytes: the sanitizer's own reads and writes of a device's memory, by any method that the device has."""

from __future__ import annotations

import ctypes
from contextlib import suppress

from landbridge.device.api import Device, Region, Space
from landbridge.device.protocols import HostBarriers, HostMemory, PeerCopy
from landbridge.errors import HostAccessError, HostViewError

#: Seconds that a copy of the sanitizer's own may take: a queue may be held for good.
_PATIENCE = 20.0
_PIECE = 1 << 20


class InnerBytes:
    """Reads and writes memory of ``device``, with ``host`` as the other end of copies. No method raises for what is
    impossible.
    """

    def __init__(self, device: Device, host: Device) -> None:
        self._device = device
        self._host = host

    def fill(self, region: Region, nbytes: int, value: int) -> bool:
        """Sets ``nbytes`` bytes to ``value``; returns whether that was possible."""
        piece = bytes([value]) * min(nbytes, _PIECE)
        for offset in range(0, nbytes, _PIECE):
            part = Region(region.space, region.byte_offset + offset)
            if not self.write(part, piece[: min(_PIECE, nbytes - offset)]):
                return False
        return True

    def write(self, region: Region, content: bytes) -> bool:
        """Writes ``content`` there; returns whether that was possible."""
        address = self._address(region)
        if address is None:
            return self._copy(region, bytearray(content), to_device=True)
        barriers = self._device.capability(HostBarriers)
        if barriers is not None:
            barriers.begin_host_access(region, len(content), "rw")
        ctypes.memmove(address, content, len(content))
        if barriers is not None:
            barriers.end_host_access(region, len(content), "rw")
        return True

    def read(self, region: Region, nbytes: int) -> bytes | None:
        """Returns the bytes there; None where they cannot be read."""
        address = self._address(region)
        if address is None:
            content = bytearray(nbytes)
            return bytes(content) if self._copy(region, content, to_device=False) else None
        barriers = self._device.capability(HostBarriers)
        if barriers is not None:
            barriers.begin_host_access(region, nbytes, "r")
        content_seen = ctypes.string_at(address, nbytes)
        if barriers is not None:
            barriers.end_host_access(region, nbytes, "r")
        return content_seen

    def _address(self, region: Region) -> int | None:
        memory = self._device.capability(HostMemory)
        if memory is None or self._device.memory_kind(region.space.scope).host_access != "read_write":
            return None
        with suppress(HostAccessError, HostViewError):
            return memory.host_pointer(region.space) + region.byte_offset
        return None

    def _copy(self, region: Region, content: bytearray, *, to_device: bool) -> bool:
        peer = self._device.capability(PeerCopy)
        array = (ctypes.c_char * len(content)).from_buffer(content)
        host_space = Space(self._host, "global", ctypes.addressof(array))
        src, dst = (Region(host_space), region) if to_device else (region, Region(host_space))
        if peer is None or not peer.can_copy(src.space, dst.space):
            return False
        event = self._device.api.copy_data_from_to(src, dst, len(content), None, (array, region))
        return event is None or event.synchronize(_PATIENCE)
