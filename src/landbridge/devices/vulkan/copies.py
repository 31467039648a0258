"""Copies: between two spaces by the device; to and from host memory by the host, or through a staging buffer."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from landbridge.devices.vulkan import structs_work
from landbridge.devices.vulkan.allocation import Allocation, Place, allocate
from landbridge.devices.vulkan.logical_device import LogicalDevice
from landbridge.devices.vulkan.timeline import Timeline
from landbridge.errors import UnsupportedError
from landbridge.target.vulkan import HOST_CACHED_SCOPE, HOST_SCOPE

#: Bytes staged at a time.
_STAGE_BYTES = 4 << 20


@dataclass(frozen=True)
class Copy:
    """``nbytes`` bytes from ``src`` to ``dst``; a Step."""

    src: Place
    dst: Place
    nbytes: int

    @property
    def places(self) -> tuple[Place, ...]:
        """The source, then the destination."""
        return self.src, self.dst

    @property
    def uses(self) -> Sequence[tuple[Allocation, bool]]:
        """It reads ``src`` and writes ``dst``."""
        return (self.src.memory, False), (self.dst.memory, True)

    def moved(self, places: Sequence[Place]) -> Copy:
        """The same copy between other places."""
        src, dst = places
        return Copy(src, dst, self.nbytes)

    def encode(self, device: LogicalDevice, commands: int) -> Callable[[], None] | None:
        """One copy of one range."""
        whole = structs_work.VkBufferCopy(srcOffset=self.src.offset, dstOffset=self.dst.offset, size=self.nbytes)
        device.calls.vkCmdCopyBuffer(commands, self.src.memory.buffer, self.dst.memory.buffer, 1, ctypes.byref(whole))
        return None


def copy_from_host(
    device: LogicalDevice, stream: Timeline, address: int, dst: Allocation, offset: int, nbytes: int
) -> None:
    """Copy ``nbytes`` bytes of the host at ``address`` into ``dst`` after all that is on ``stream``; done on return."""
    stream.drain()
    if dst.address is not None:
        dst.wait(writes=True)
        ctypes.memmove(dst.address + offset, address, nbytes)
        dst.flush(offset, nbytes)
        return
    with _stage(device, nbytes) as (stage, window):
        for start in range(0, nbytes, _STAGE_BYTES):
            part = min(_STAGE_BYTES, nbytes - start)
            ctypes.memmove(window, address + start, part)
            stage.flush(0, part)
            device.submit(stream, [Copy(Place(stage, 0), Place(dst, offset + start), part)]).synchronize()


def copy_to_host(
    device: LogicalDevice, stream: Timeline, src: Allocation, offset: int, address: int, nbytes: int
) -> None:
    """Copy ``nbytes`` bytes of ``src`` to the host at ``address`` after all that is on ``stream``; done on return."""
    stream.drain()
    if src.address is not None:
        src.wait(writes=False)
        src.invalidate(offset, nbytes)
        ctypes.memmove(address, src.address + offset, nbytes)
        return
    with _stage(device, nbytes) as (stage, window):
        for start in range(0, nbytes, _STAGE_BYTES):
            part = min(_STAGE_BYTES, nbytes - start)
            device.submit(stream, [Copy(Place(src, offset + start), Place(stage, 0), part)]).synchronize()
            stage.invalidate(0, part)
            ctypes.memmove(address + start, window, part)


@contextmanager
def _stage(device: LogicalDevice, nbytes: int) -> Iterator[tuple[Allocation, int]]:
    """Memory that both sides see, and where the host sees it; raises UnsupportedError where there is none."""
    kind = next((device.scopes[s] for s in (HOST_CACHED_SCOPE, HOST_SCOPE) if s in device.scopes), None)
    if kind is None:
        raise UnsupportedError(f"{device.name} has no memory that the host sees, to stage a copy in")
    stage = allocate(device, kind, min(nbytes, _STAGE_BYTES), 1)
    try:
        yield stage, stage.address or 0
    finally:
        device.free(stage)
