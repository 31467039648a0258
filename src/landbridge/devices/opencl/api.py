"""OpenCLDeviceAPI: every device of every OpenCL driver of this machine that builds and runs a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from landbridge.device.api import DEVICE_API_VERSION, Device, DeviceAPI, Event, NdSpace, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.checks import is_copy_to_itself, owning_device, stream_handle
from landbridge.device.import_source import ImportSource
from landbridge.device.protocols import AccessMode
from landbridge.devices.opencl.allocation import alloc_flat, alloc_image
from landbridge.devices.opencl.attributes import attribute
from landbridge.devices.opencl.blocks import BufferBlock
from landbridge.devices.opencl.copies import check_copy, copy, reaches
from landbridge.devices.opencl.discovery import Found, discover
from landbridge.devices.opencl.events import QueueEvent, elapsed_ms
from landbridge.devices.opencl.imports import import_block
from landbridge.devices.opencl.instance import OpenCLInstance, Queue
from landbridge.devices.opencl.mapping import begin, end, end_all, host_address
from landbridge.devices.opencl.modules import OpenCLModule, formats, launch, load
from landbridge.devices.opencl.recording import OpenCLRecorder, OpenCLRecording
from landbridge.errors import DeviceError, DeviceIndexError, InputError, UseAfterFreeError
from landbridge.memory_kind import MemoryKind, normalize_scope
from landbridge.process.locks import new_lock


class OpenCLDeviceAPI(DeviceAPI):
    """OpenCL devices in the order of the drivers; those of one driver share a context, and so each other's memory.

    Devices are searched for at the first request, which takes a moment, as a kernel is built on each.
    """

    name: ClassVar[str] = "opencl"
    device_type: ClassVar[int | None] = 4
    api_version: ClassVar[int] = DEVICE_API_VERSION

    def __init__(self) -> None:
        self._lock = new_lock()
        self._found: list[Found] | None = None
        self._report: list[str] = []
        self._instances: dict[int, OpenCLInstance] = {}

    # --- facts -------------------------------------------------------------------------------------------------

    def count(self) -> int:
        """Returns the number of devices that run kernels; 0 without a driver, which ``discovery`` reports."""
        with self._lock:
            if self._found is None:
                self._found, self._report = discover()
            return len(self._found)

    def discovery(self) -> Sequence[str]:
        """Returns a line for each platform and device that was looked at."""
        self.count()
        return tuple(self._report)

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        """Returns the answer of clGetDeviceInfo; None for what it does not cover."""
        return attribute(self._instance(index).device, attr)

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        """Returns the kinds ``global`` (buffers), ``global.svm`` (shared memory) and ``global.texture`` (images)."""
        return self._instance(index).facts.kinds

    def target_properties(self, index: int) -> Mapping[str, Any]:
        """Returns the options of target kind ``opencl`` that describe the device."""
        return self._instance(index).facts.options

    # --- lifecycle ---------------------------------------------------------------------------------------------

    def open(self, index: int, **options: object) -> None:
        """Open instance ``index``; option ``profiling=True`` times its queues, for ``elapsed_ms``."""
        unknown = sorted(set(options) - {"profiling"})
        if unknown:
            raise InputError(f"opencl:{index} has no options {', '.join(unknown)}; legal: profiling, a bool")
        self.count()
        profiling = bool(options.get("profiling"))
        with self._lock:
            if index not in self._instances or self._instances[index].profiling != profiling:
                self._instances[index] = OpenCLInstance(index, self._of_index(index), profiling=profiling)

    def close(self, index: int) -> None:
        """Finish queued work on instance ``index``; release its queues and the parts of buffers kernels got."""
        with self._lock:
            instance = self._instances.pop(index, None)
        if instance is not None:
            instance.close()

    def reset(self, index: int) -> None:
        """Close instance ``index`` and open it again, its queues timed as they were."""
        profiling = self._instance(index).profiling
        self.close(index)
        self.open(index, profiling=profiling)

    # --- memory ------------------------------------------------------------------------------------------------

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        """Returns a buffer (CL_MEM_ALLOC_HOST_PTR where the host shares the memory) or a shared allocation."""
        scope = normalize_scope(scope)
        return Space(Device(self, index), scope, alloc_flat(self._instance(index), nbytes, alignment, scope))

    def alloc_data_space_nd(
        self, index: int, physical_shape: Sequence[int], dtype: str, scope: str, alignment: int
    ) -> NdSpace:
        """Returns an image of (rows, pixels, lanes); the driver decides on ``alignment``."""
        return alloc_image(self._instance(index), Device(self, index), physical_shape, dtype, normalize_scope(scope))

    def free_data_space(self, space: Space) -> None:
        """Free ``space`` after its last command."""
        self._release(space)

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        """Import memory of this process: a buffer with CL_MEM_USE_HOST_PTR, or the pointer where all memory is SVM.

        Raises ZeroCopyError with the address, the alignment needed and the one found.
        """
        block = import_block(self._instance(index), source, access)
        return Space(Device(self, index), block.scope, block)

    def release_import(self, space: Space) -> None:
        """Release the buffer over the owner's memory after its last command."""
        self._release(space)

    def _release(self, space: Space) -> None:
        block, instance = space.handle, self._instance(space.device.index)
        if not block.alive:
            raise UseAfterFreeError("this space of an OpenCL device was freed before")
        if getattr(block, "mappings", None):
            end_all(instance, block)
        instance.wait(block)
        for each in tuple(self._instances.values()):
            each.divided.discard(block)
        block.release()

    def can_copy(self, src: Space, dst: Space) -> bool:
        """Returns True within one driver's context, and with coherent memory of the host."""
        if self not in (src.device.api, dst.device.api):
            return False
        context = self._instance(owning_device(self, src, dst).index).context
        return reaches(context, src) and reaches(context, dst)

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        """Queue the copy on ``stream``, or on the queue of the destination's device."""
        owner = owning_device(self, src.space, dst.space)
        if stream is not None and stream.device in (src.space.device, dst.space.device):
            owner = stream.device
        queue = self._queue(owner.index, stream)
        check_copy(queue, src, dst, nbytes)
        if nbytes == 0 or is_copy_to_itself(self, src, dst, nbytes):
            return None
        return copy(queue, src, dst, nbytes)

    # --- host access -------------------------------------------------------------------------------------------

    def host_pointer(self, space: Space) -> int:
        """Returns the address at which the driver maps ``space`` for the host."""
        return host_address(self._instance(space.device.index), self._flat(space))

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        """Map the bytes (clEnqueueMapBuffer, clEnqueueSVMMap), after all commands that use the space."""
        space = region.space
        begin(self._instance(space.device.index), self._flat(space), region.byte_offset, nbytes, mode)

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        """Unmap the bytes; commands queued from now on see what the host wrote."""
        space = region.space
        end(self._instance(space.device.index), self._flat(space), region.byte_offset, nbytes, mode)

    # --- streams and events ------------------------------------------------------------------------------------

    def create_stream(self, index: int) -> Stream:
        """Returns a new in-order queue."""
        instance = self._instance(index)
        queue = Queue(instance)
        instance.queues[queue.key] = queue
        return Stream(Device(self, index), queue)

    def free_stream(self, stream: Stream) -> None:
        """Finish queued work of ``stream``, which takes no more."""
        queue = self._queue(stream.device.index, stream)
        queue.finish()
        queue.alive = False
        queue.instance.queues.pop(queue.key, None)

    def set_stream(self, index: int, stream: Stream | None) -> None:
        """Do nothing, as every call names its queue."""
        self._queue(index, stream)

    def stream_sync(self, index: int, stream: Stream | None) -> None:
        """Wait, interruptibly, until what is queued on ``stream`` is done."""
        self._queue(index, stream).finish()

    def sync_stream_from_to(self, index: int, source: Stream | None, target: Stream | None) -> None:
        """Make ``target`` wait for the present work of ``source``."""
        self.wait_event(index, target, self.record_event(index, source))

    def record_event(self, index: int, stream: Stream | None) -> Event:
        """Returns a marker after all work queued on ``stream``."""
        return self._queue(index, stream).marker()

    def wait_event(self, index: int, stream: Stream | None, event: Event) -> None:
        """Make work queued on ``stream`` from now on wait for ``event``, which may be of another driver."""
        self._queue(index, stream).wait_for(event)

    def elapsed_ms(self, start: Event, end: Event) -> float | None:
        """Returns the time by the device's clock, where the instance was opened with ``profiling=True``; else None."""
        if not isinstance(start, QueueEvent) or not isinstance(end, QueueEvent):
            return None
        return elapsed_ms(start, end)

    # --- modules and recordings --------------------------------------------------------------------------------

    def module_formats(self, index: int) -> Sequence[str]:
        """Returns ``opencl-c``, and ``spirv`` where the driver takes it."""
        return formats(self._instance(index))

    def load_module(self, index: int, binary: bytes, format: str, options: str = "") -> object:
        """Build ``binary``, source of ``opencl-c`` or a ``spirv`` module, with the compiler's ``options``.

        Raises KernelBuildError with the source and the driver's log.
        """
        return load(self._instance(index), binary, format, options)

    def launch(
        self,
        module: object,
        function: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Region | int | float],
        stream: Stream | None,
    ) -> Event | None:
        """Queue ``grid`` workgroups of ``block`` work-items. ``args``: regions, numbers, numpy scalars."""
        if not isinstance(module, OpenCLModule):
            raise InputError(f"opencl launches kernels of modules it loaded, not of {module!r}")
        index = module.instance.index if stream is None else stream.device.index
        return launch(self._queue(index, stream), module, function, tuple(grid), tuple(block), args)  # type: ignore[arg-type]

    def begin_record(self, index: int, stream: Stream | None) -> None:
        """Record what is submitted to ``stream`` from now on, without doing it.

        Raises DeviceError when it is being recorded already.
        """
        queue = self._queue(index, stream)
        if queue.recorder is not None:
            raise DeviceError(f"opencl:{index} is recording this stream already; call end_record first")
        queue.recorder = OpenCLRecorder(queue)

    def end_record(self, index: int, stream: Stream | None) -> object:
        """Returns the recording. Positions for ``replay`` count its regions in the order of their first use."""
        queue = self._queue(index, stream)
        recorder, queue.recorder = queue.recorder, None
        if recorder is None:
            raise DeviceError(f"opencl:{index} is not recording this stream; call begin_record first")
        return OpenCLRecording(recorder)

    def replay(self, recording: object, args: Mapping[int, Region], stream: Stream | None) -> Event | None:
        """Queue a recording; the regions in ``args`` stay bound to their positions."""
        if not isinstance(recording, OpenCLRecording):
            raise InputError(f"opencl replays recordings of its own, not {recording!r}")
        index = recording.instance.index if stream is None else stream.device.index
        return recording.replay(self._queue(index, stream), args)

    # --- inside ------------------------------------------------------------------------------------------------

    def _of_index(self, index: int) -> Found:
        if not 0 <= index < self.count():
            raise DeviceIndexError(f"opencl:{index} does not exist; there are {self.count()}")
        assert self._found is not None
        return self._found[index]

    def _instance(self, index: int) -> OpenCLInstance:
        found = self._instances.get(index)
        if found is None:
            with self._lock:
                found = self._instances.get(index)
                if found is None:
                    self.open(index)
                    found = self._instances[index]
        return found

    def _queue(self, index: int, stream: Stream | None) -> Queue:
        if stream is None:
            return self._instance(index).queue
        queue: Queue = stream_handle(self, index, stream)
        return queue

    def _flat(self, space: Space) -> Any:
        block = space.handle
        if not isinstance(block, BufferBlock):
            raise InputError(f"scope {space.scope!r} of {space.device} holds images, which the host does not address")
        block.check(0, 0)
        return block
