"""Copies: between two spaces by the device; to and from host memory by the host, or through a staging buffer."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from landbridge.device.api import Region
from landbridge.device.checks import host_address
from landbridge.devices.vulkan import flags, structs_work
from landbridge.devices.vulkan.allocation import Allocation, allocate
from landbridge.devices.vulkan.driver_objects import DriverObjects
from landbridge.devices.vulkan.images import LARGEST_ROW, Image, check_pixels, copy_pixels
from landbridge.devices.vulkan.logical_device import LogicalDevice
from landbridge.devices.vulkan.memory_uses import UsedMemory
from landbridge.devices.vulkan.steps import MemoryLocation
from landbridge.devices.vulkan.timeline import Point, Timeline
from landbridge.errors import UnsupportedError
from landbridge.memory_kind import GLOBAL_SCOPE
from landbridge.records import record
from landbridge.targets.vulkan import HOST_CACHED_SCOPE, HOST_SCOPE

#: The bytes that are staged at a time.
_STAGE_BYTES = 4 << 20
#: The host reads fewer bytes than this uncached faster than the device copies them: some 50 MB/s over a bus against the
#: 20 us or so of a submission that is waited for.
_FEW_BYTES = 1 << 10


@record(frozen=True)
class Copy:
    """A Step that copies ``nbytes`` bytes from ``src`` to ``dst``."""

    src: MemoryLocation
    dst: MemoryLocation
    nbytes: int

    @property
    def places(self) -> tuple[MemoryLocation, ...]:
        """Returns the source, then the destination."""
        return self.src, self.dst

    @property
    def uses(self) -> Sequence[tuple[UsedMemory, bool]]:
        """Returns ``src``, which it reads, and ``dst``, which it writes."""
        return (self.src.memory, False), (self.dst.memory, True)

    def moved(self, places: Sequence[MemoryLocation]) -> Copy:
        """Returns the same copy between other places."""
        src, dst = places
        return Copy(src, dst, self.nbytes)

    def encode(self, device: DriverObjects, commands: int) -> Callable[[], None] | None:
        """Append a copy of one range, or of one block of pixels."""
        source, target = self.src.memory, self.dst.memory
        if isinstance(source, Image) or isinstance(target, Image):
            copy_pixels(device, commands, self.src, self.dst, self.nbytes)
            return None
        assert isinstance(source, Allocation) and isinstance(target, Allocation)
        whole = structs_work.VkBufferCopy(srcOffset=self.src.offset, dstOffset=self.dst.offset, size=self.nbytes)
        device.calls.vkCmdCopyBuffer(commands, source.buffer, target.buffer, 1, ctypes.byref(whole))
        return None


def copy(device: LogicalDevice, stream: Timeline, src: Region, dst: Region, nbytes: int) -> Point | None:
    """Queue a copy with one end in memory of ``device`` at least; returns None where it is done, or recorded
    instead.
    """
    source, target = _location(device, src), _location(device, dst)
    check_pixels([end for end in (source, target) if end is not None], nbytes)
    if source is not None and target is not None:
        return device.give(stream, Copy(source, target, nbytes))
    if stream.recorder is not None:
        raise UnsupportedError("a copy from or to the host cannot be recorded; copy before, or import the memory")
    if target is not None:
        copy_from_host(device, stream, host_address(src), target, nbytes)
    elif source is not None:
        copy_to_host(device, stream, source, host_address(dst), nbytes)
    return None


def copy_from_host(device: LogicalDevice, stream: Timeline, address: int, dst: MemoryLocation, nbytes: int) -> None:
    """Copy ``nbytes`` bytes of the host at ``address`` into ``dst`` after all that is on ``stream``; done on return."""
    stream.drain()
    memory = dst.memory
    if isinstance(memory, Allocation) and memory.address is not None:
        memory.wait(writes=True)
        ctypes.memmove(memory.address + dst.offset, address, nbytes)
        memory.flush(dst.offset, nbytes)
        return
    with _stage(device, nbytes) as (stage, window):
        for start, part in _parts(memory, nbytes):
            ctypes.memmove(window, address + start, part)
            stage.flush(0, part)
            device.submit(
                stream, [Copy(MemoryLocation(stage, 0), MemoryLocation(memory, dst.offset + start), part)]
            ).synchronize()


def copy_to_host(device: LogicalDevice, stream: Timeline, src: MemoryLocation, address: int, nbytes: int) -> None:
    """Copy ``nbytes`` bytes of ``src`` to the host at ``address`` after all that is on ``stream``; done on return."""
    stream.drain()
    memory = src.memory
    if isinstance(memory, Allocation) and memory.address is not None and not _is_slow_to_read(device, memory, nbytes):
        memory.wait(writes=False)
        memory.invalidate(src.offset, nbytes)
        ctypes.memmove(address, memory.address + src.offset, nbytes)
        return
    with _stage(device, nbytes) as (stage, window):
        for start, part in _parts(memory, nbytes):
            device.submit(
                stream, [Copy(MemoryLocation(memory, src.offset + start), MemoryLocation(stage, 0), part)]
            ).synchronize()
            stage.invalidate(0, part)
            ctypes.memmove(address + start, window, part)


def _is_slow_to_read(device: LogicalDevice, memory: Allocation, nbytes: int) -> bool:
    """Returns whether the device copies these bytes to cached host memory faster than the host reads them."""
    if nbytes < _FEW_BYTES or memory.memory_type.has(flags.MEMORY_HOST_CACHED):
        return False
    return any(kind.has(flags.MEMORY_HOST_VISIBLE | flags.MEMORY_HOST_CACHED) for kind in device.scopes.values())


def _location(device: LogicalDevice, region: Region) -> MemoryLocation | None:
    """Returns the location of ``region`` on ``device``; None for memory that only the host can access."""
    memory = region.space.handle
    is_ours = isinstance(memory, UsedMemory) and memory.device is device
    return MemoryLocation(memory, region.byte_offset) if is_ours else None


def _parts(memory: UsedMemory, nbytes: int) -> Iterator[tuple[int, int]]:
    """Yields start and size of each staged part: of an image whole rows, unless it has less than one."""
    step = _STAGE_BYTES
    if isinstance(memory, Image):
        step = max(memory.row_pitch, _STAGE_BYTES // memory.row_pitch * memory.row_pitch)
    for start in range(0, nbytes, step):
        yield start, min(step, nbytes - start)


@contextmanager
def _stage(device: LogicalDevice, nbytes: int) -> Iterator[tuple[Allocation, int]]:
    """Yields memory that both sides see, and its host address; raises UnsupportedError where there is none."""
    scopes = [s for s in (HOST_CACHED_SCOPE, HOST_SCOPE, GLOBAL_SCOPE) if s in device.scopes]
    kind = next((device.scopes[s] for s in scopes if device.scopes[s].has(flags.MEMORY_HOST_VISIBLE)), None)
    if kind is None:
        raise UnsupportedError(f"{device.name} has no memory that the host sees, to stage a copy in")
    stage = allocate(device, kind, min(nbytes, max(_STAGE_BYTES, LARGEST_ROW)), 1)
    try:
        yield stage, stage.address or 0
    finally:
        stage.free()
