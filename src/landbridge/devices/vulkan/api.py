"""VulkanDeviceAPI: every device that a Vulkan driver finds, through the loader alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from landbridge.device.api import DEVICE_API_VERSION, Device, DeviceAPI, Event, NdSpace, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.checks import check_inside, host_reaches, is_copy_to_itself, stream_handle
from landbridge.device.import_source import ImportSource
from landbridge.device.protocols import AccessMode
from landbridge.devices.vulkan.allocation import Allocation, alloc_flat, allocation_of
from landbridge.devices.vulkan.attributes import attribute, target_properties
from landbridge.devices.vulkan.copies import copy
from landbridge.devices.vulkan.dispatch import dispatch
from landbridge.devices.vulkan.images import alloc_image
from landbridge.devices.vulkan.imports import export_dma_buf, export_handle, import_memory
from landbridge.devices.vulkan.logical_device import DL_VULKAN, LogicalDevice
from landbridge.devices.vulkan.memory_uses import UsedMemory, memory_of
from landbridge.devices.vulkan.modules import VulkanModule
from landbridge.devices.vulkan.open_devices import OpenDevices
from landbridge.devices.vulkan.recording import VulkanRecording
from landbridge.devices.vulkan.steps import MemoryLocation, VulkanRecorder
from landbridge.devices.vulkan.timeline import Point, Timeline, elapsed_ms
from landbridge.errors import HostViewError, InputError, UseAfterFreeError
from landbridge.memory_kind import MemoryKind, normalize_scope

_PAGE = 4096  # what every driver aligns an allocation to


class VulkanDeviceAPI(DeviceAPI):
    """Devices of Vulkan 1.2 or newer; real GPUs are numbered before CPUs. One is opened at its first use.

    ``coherent`` and ``unified`` False use a device as if it had no coherent memory, or none that both sides share: so
    the flushes, barriers and staged copies of other hardware run on any driver. ``open(index, ...)`` takes the same
    options for one instance.
    """

    name: ClassVar[str] = "vulkan"
    device_type: ClassVar[int | None] = DL_VULKAN
    api_version: ClassVar[int] = DEVICE_API_VERSION

    def __init__(self, *, coherent: bool = True, unified: bool = True) -> None:
        self._devices = OpenDevices(coherent=coherent, unified=unified)

    def count(self) -> int:
        """Returns how many devices drivers find; 0 without a loader or a driver, which ``discovery`` reports."""
        return len(self._devices.physical)

    def discovery(self) -> Sequence[str]:
        """Returns what is missing, and the devices that are not used, with the reason."""
        return self._devices.diagnostics

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        """Returns what the driver reports; None for what Vulkan cannot query."""
        found = self._devices.physical
        return attribute(found[index], attr) if 0 <= index < len(found) else None

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        """Returns the driver's memory types by scope."""
        return self.logical(index).kinds

    def target_properties(self, index: int) -> Mapping[str, Any]:
        """Returns limits and features of the device, as options of the target kind ``vulkan``."""
        return target_properties(self.logical(index))

    # --- lifecycle -----------------------------------------------------------------------------------------------

    def open(self, index: int, **options: object) -> None:
        """Open instance ``index`` with the options ``coherent`` and ``unified``; reopen it where it has others."""
        self._devices.open(index, **options)

    def close(self, index: int) -> None:
        """Wait for what is queued, and destroy everything made on instance ``index``."""
        self._devices.close(index)

    def reset(self, index: int) -> None:
        """Close instance ``index`` and open it with the options it had."""
        self._devices.reset(index)

    def logical(self, index: int) -> LogicalDevice:
        """Returns instance ``index``, which is opened if it was not."""
        return self._devices.logical(index)

    # --- memory --------------------------------------------------------------------------------------------------

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        """Allocate memory of the driver with a buffer over it, mapped where the host sees the scope."""
        scope = normalize_scope(scope)
        return Space(Device(self, index), scope, alloc_flat(self.logical(index), nbytes, alignment, scope))

    def alloc_shared_space(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        """Allocate as ``alloc_data_space`` does, so that ``export_fd`` works where the driver has dma-bufs."""
        device, scope = self.logical(index), normalize_scope(scope)
        # An exported buffer begins where its memory does; larger alignments than the driver's are for other memory.
        handle_type = export_handle(device) if alignment <= _PAGE else 0
        return Space(Device(self, index), scope, alloc_flat(device, nbytes, alignment, scope, handle_type))

    def export_fd(self, space: Space) -> int:
        """Returns a dma-buf of memory that was made to be shared; the caller closes it. Raises ZeroCopyError."""
        return export_dma_buf(self.logical(space.device.index), allocation_of(space))

    def alloc_data_space_nd(
        self, index: int, physical_shape: Sequence[int], dtype: str, scope: str, alignment: int
    ) -> NdSpace:
        """Returns an image: rows, pixels, and 1, 2 or 4 lanes of a pixel; kernels are not given any."""
        return alloc_image(self.logical(index), Device(self, index), physical_shape, dtype, normalize_scope(scope))

    def free_data_space(self, space: Space) -> None:
        """Free ``space``; the driver's objects are destroyed after the last batch that uses them."""
        memory: UsedMemory = space.handle
        if memory.freed:
            raise UseAfterFreeError(f"a space of {space.device} is freed twice")
        memory.free()

    def host_pointer(self, space: Space) -> int:
        """Returns the address at which this process maps the first byte."""
        allocation = allocation_of(space)
        if allocation.address is None:
            raise HostViewError(
                f"the host cannot address scope {space.scope!r} of {space.device}; copy the tensor with "
                "t.to_device('cpu'), or allocate it with host_access='rw'"
            )
        return allocation.address

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        """Wait for work that the access must follow, then ``vkInvalidateMappedMemoryRanges`` where it is needed."""
        allocation_of(region.space).wait(writes=mode != "r")
        self.begin_host_access_after(region, nbytes, mode, ())

    def begin_host_access_after(self, region: Region, nbytes: int, mode: AccessMode, events: Sequence[Event]) -> None:
        """Wait for ``events``, then ``vkInvalidateMappedMemoryRanges`` where it is needed."""
        for event in events:
            event.synchronize()
        if mode != "w":
            allocation_of(region.space).invalidate(region.byte_offset, nbytes)

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        """Call ``vkFlushMappedMemoryRanges`` where the host wrote and the kind is not coherent."""
        allocation = allocation_of(region.space)
        if mode != "r":
            allocation.flush(region.byte_offset, nbytes)

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        """Import memory of this process, or a dma-buf, in place; raises ZeroCopyError with what the driver requires."""
        scope, allocation = import_memory(self.logical(index), source)
        return Space(Device(self, index), scope, allocation)

    def release_import(self, space: Space) -> None:
        """Wait until the device has finished with the memory, and release the import; the owner keeps the bytes."""
        allocation: Allocation = space.handle
        if not allocation.freed and allocation.device.is_open:
            allocation.wait(writes=True)
            allocation.free()

    # --- copies --------------------------------------------------------------------------------------------------

    def can_copy(self, src: Space, dst: Space) -> bool:
        """Returns True within one device, and between a device and memory that the host can access."""
        ours = [space for space in (src, dst) if space.device.api is self]
        if len(ours) == 2:
            return src.device == dst.device
        return len(ours) == 1 and all(space in ours or host_reaches(space) for space in (src, dst))

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        """Queue ``vkCmdCopyBuffer``; a copy from or to host memory is done on return."""
        if not self.can_copy(src.space, dst.space):
            raise InputError(
                f"vulkan cannot copy from {src.space.device} to {dst.space.device}; copy by way of the host"
            )
        owner = dst.space if dst.space.device.api is self else src.space
        queue = self._timeline(owner.device.index, stream)
        for end in (src, dst):
            self._check_region(end, nbytes)
        if nbytes == 0 or is_copy_to_itself(self, src, dst, nbytes):
            return None
        return copy(self.logical(owner.device.index), queue, src, dst, nbytes)

    # --- streams and events --------------------------------------------------------------------------------------

    def create_stream(self, index: int) -> Stream:
        """Returns a stream with a semaphore of its own, unordered with the others."""
        return Stream(Device(self, index), Timeline(self.logical(index)))

    def free_stream(self, stream: Stream) -> None:
        """Free ``stream``: queued work is still done, and no more may be queued."""
        timeline = self._timeline(stream.device.index, stream)
        timeline.alive = False

    def set_stream(self, index: int, stream: Stream | None) -> None:
        """Do nothing, as Vulkan has no current stream."""
        self._timeline(index, stream)

    def stream_sync(self, index: int, stream: Stream | None) -> None:
        """Wait, interruptibly, for all that is queued on ``stream``."""
        self._timeline(index, stream).drain()

    def sync_stream_from_to(self, index: int, source: Stream | None, target: Stream | None) -> None:
        """Make the next batch of ``target`` wait for the present work of ``source``."""
        first, second = self._timeline(index, source), self._timeline(index, target)
        for timeline, count in (*first.waits.items(), (first, first.submitted)):
            second.wait_for(timeline, count)

    def record_event(self, index: int, stream: Stream | None) -> Point:
        """Returns a point of the stream, with the device's time where the driver has a clock."""
        timeline = self._timeline(index, stream)
        return self.logical(index).submit(timeline, (), timed=True)

    def wait_event(self, index: int, stream: Stream | None, event: Event) -> None:
        """Make the next batch of ``stream`` wait for ``event``; this call waits for one of another device."""
        timeline = self._timeline(index, stream)
        if isinstance(event, Point) and event.stream.device is timeline.device:
            timeline.wait_for(event.stream, event.count)
        else:
            event.synchronize()

    def elapsed_ms(self, start: Event, end: Event) -> float | None:
        """Returns the time by the device's clock; None between points that are not done, or without a clock."""
        return elapsed_ms(start, end) if isinstance(start, Point) and isinstance(end, Point) else None

    # --- modules and recordings -----------------------------------------------------------------------------------

    def module_formats(self, index: int) -> Sequence[str]:
        """Returns ``spirv``."""
        return ("spirv",)

    def load_module(self, index: int, binary: bytes, format: str, options: str = "") -> VulkanModule:
        """Load SPIR-V of compute shaders; ``options`` are not used. Raises KernelBuildError with the module's text.

        Each entry point is a kernel. Its storage buffers and images, of descriptor set 0, take the Regions of a launch
        in the order of their bindings, its push constants the scalars. With one unsigned push constant for each buffer,
        and no scalars, they are the elements at which the Regions begin, at any offset.
        """
        if format != "spirv":
            raise InputError(f"vulkan:{index} loads no modules of format {format!r}; legal: spirv")
        return VulkanModule(self.logical(index), binary)

    def launch(
        self,
        module: object,
        function: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Region | int | float],
        stream: Stream | None,
    ) -> Event | None:
        """Queue ``grid`` workgroups of ``function``; ``block`` must be the workgroup size in the module."""
        if not isinstance(module, VulkanModule):
            raise InputError(f"vulkan launches what load_module gave, not {module!r}")
        module.device.check_open()
        timeline = self._timeline(module.device.index, stream)
        for arg in args:
            if isinstance(arg, Region) and arg.space.device.api is not self:
                raise InputError(f"kernel {function!r} was given memory of {arg.space.device}; import it, or copy it")
        places = [_location(arg) for arg in args if isinstance(arg, Region)]
        scalars = [arg for arg in args if not isinstance(arg, Region)]
        return module.device.give(timeline, dispatch(module.kernel(function), grid, block, places, scalars))

    def begin_record(self, index: int, stream: Stream | None) -> None:
        """Record copies and launches submitted to ``stream`` instead of doing them."""
        timeline = self._timeline(index, stream)
        if timeline.recorder is not None:
            raise InputError(f"a stream of vulkan:{index} is recorded already; end that recording first")
        timeline.recorder = VulkanRecorder()

    def end_record(self, index: int, stream: Stream | None) -> VulkanRecording:
        """Returns the recording, as command buffers that are made once for each binding of its regions."""
        timeline = self._timeline(index, stream)
        recorder, timeline.recorder = timeline.recorder, None
        if recorder is None:
            raise InputError(f"no recording of this stream of vulkan:{index} was begun; call begin_record first")
        return VulkanRecording(self.logical(index), recorder)

    def replay(self, recording: object, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        """Queue a recording as one batch; ``args`` stay bound to their positions, which count regions by first use."""
        if not isinstance(recording, VulkanRecording):
            raise InputError(f"vulkan replays what end_record gave, not {recording!r}")
        for region in args.values():
            self._check_region(region, 0)
        recording.device.check_open()
        timeline = self._timeline(recording.device.index, stream)
        return recording.replay(timeline, {position: _location(region) for position, region in args.items()})

    # --- inside --------------------------------------------------------------------------------------------------

    def _timeline(self, index: int, stream: Stream | None) -> Timeline:
        if stream is None:
            return self.logical(index).stream
        timeline: Timeline = stream_handle(self, index, stream)
        timeline.device.check_open()
        return timeline

    def _check_region(self, region: Region, nbytes: int) -> None:
        is_ours = region.space.device.api is self
        size = memory_of(region.space).nbytes if is_ours else region.byte_offset + nbytes
        check_inside(region.byte_offset, nbytes, size, "vulkan")


def _location(region: Region) -> MemoryLocation:
    return MemoryLocation(region.space.handle, region.byte_offset)
