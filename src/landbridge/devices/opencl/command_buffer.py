"""Command buffers, cl_khr_command_buffer: a recording that the driver queues as a whole.

pyopencl does not know the extension. Its functions are found with clGetExtensionFunctionAddressForPlatform and called
through ctypes; constants and signatures are those of the OpenCL extension specification, section cl_khr_command_buffer.
A command buffer keeps the arguments its kernels had when it was made, so one is made for each set of regions: rotating
a few buffers makes as many, once.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import OrderedDict, deque
from collections.abc import Sequence
from ctypes import POINTER, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from functools import cache
from typing import Any

import pyopencl as cl

from landbridge.devices.opencl.commands import RecordedLaunch
from landbridge.devices.opencl.driver_errors import driver_call
from landbridge.devices.opencl.instance import OpenCLInstance, Queue
from landbridge.errors import DeviceError

EXTENSION = "cl_khr_command_buffer"
#: The fewest launches of which one is made. PoCL takes as long for 16 launches either way, and with fewer it takes
#: longer for a command buffer: 3 us with one launch (benchmarks/results/opencl_overhead.md).
FEWEST = 16
_RETAINED = 16
_INVALID_OPERATION = -59  # CL_INVALID_OPERATION: a command buffer is pending

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "clCreateCommandBufferKHR": (c_void_p, c_uint32, POINTER(c_void_p), c_void_p, POINTER(c_int32)),
    "clFinalizeCommandBufferKHR": (c_int32, c_void_p),
    "clReleaseCommandBufferKHR": (c_int32, c_void_p),
    "clEnqueueCommandBufferKHR": (
        c_int32, c_uint32, POINTER(c_void_p), c_void_p, c_uint32, POINTER(c_void_p), POINTER(c_void_p),
    ),
    "clCommandNDRangeKernelKHR": (
        c_int32, c_void_p, c_void_p, POINTER(c_uint64), c_void_p, c_uint32, POINTER(c_size_t), POINTER(c_size_t),
        POINTER(c_size_t), c_uint32, POINTER(c_uint32), POINTER(c_uint32), POINTER(c_void_p),
    ),
}  # fmt: skip


class CommandBufferAPI:
    """The functions of the extension on one platform; the constructor raises DeviceError when one is missing."""

    def __init__(self, platform: cl.Platform) -> None:
        library = ctypes.CDLL(cl._cl.__file__)  # the import also brings the loader that pyopencl uses
        find = library.clGetExtensionFunctionAddressForPlatform
        find.restype, find.argtypes = c_void_p, [c_void_p, ctypes.c_char_p]
        self._functions: dict[str, Any] = {}
        for name, (result, *arguments) in _SIGNATURES.items():
            address = find(platform.int_ptr, name.encode())
            if not address:
                raise DeviceError(f"{platform.name} lists {EXTENSION} and has no {name}")
            self._functions[name] = ctypes.CFUNCTYPE(result, *arguments)(address)

    def call(self, name: str, *arguments: Any) -> None:
        """Call ``name``, which returns a status; raises DeviceError for one that is not 0."""
        status = self._functions[name](*arguments)
        if status:
            raise DeviceError(f"{name}: the OpenCL driver refuses with {status}")

    def enqueue(self, queue: cl.CommandQueue, handle: int) -> cl.Event | None:
        """Queue the command buffer ``handle``; returns None when the driver says that it is queued already."""
        event, queues = c_void_p(), (c_void_p * 1)(queue.int_ptr)
        name = "clEnqueueCommandBufferKHR"
        status = self._functions[name](1, queues, handle, 0, None, ctypes.byref(event))
        if status == _INVALID_OPERATION:
            return None
        if status:
            raise DeviceError(f"{name}: the OpenCL driver refuses with {status}")
        return cl.Event.from_int_ptr(event.value or 0, retain=False)

    def create(self, queue: cl.CommandQueue) -> int:
        """Returns an empty command buffer for ``queue``."""
        status, queues = c_int32(), (c_void_p * 1)(queue.int_ptr)
        created = self._functions["clCreateCommandBufferKHR"](1, queues, None, ctypes.byref(status))
        if status.value or not created:
            raise DeviceError(f"clCreateCommandBufferKHR: the OpenCL driver refuses with {status.value}")
        return int(created)


@cache
def _api_of(device: cl.Device) -> CommandBufferAPI | None:
    """Returns the functions of the extension for ``device``; None where its driver has not all of them."""
    if EXTENSION not in device.extensions.split():
        return None
    try:
        return CommandBufferAPI(device.platform)
    except (DeviceError, OSError):
        return None


class CommandBuffers:
    """The command buffers of one recording, by the regions they were made with; the least recently used are
    released.
    """

    def __init__(self, api: CommandBufferAPI) -> None:
        self._api = api
        self._created: OrderedDict[tuple[object, ...], _CommandBuffer] = OrderedDict()
        self._seen: deque[tuple[object, ...]] = deque(maxlen=_RETAINED)
        self._refused = False

    @classmethod
    def of(cls, instance: OpenCLInstance) -> CommandBuffers | None:
        """Returns new CommandBuffers; None where the driver has no such extension, or only a part of it."""
        api = _api_of(instance.device)
        return None if api is None else cls(api)

    def enqueue(
        self, queue: Queue, key: tuple[object, ...], launches: Sequence[RecordedLaunch], values: Sequence[Any]
    ) -> cl.Event | None:
        """Queue ``launches``, whose kernels have their arguments, as a command buffer; None where that is impossible.

        A command buffer is made when a ``key`` comes to ``queue`` for the second time, so the first time returns None.
        So does a buffer that is still queued, and every call after the driver has refused one, as it may with a
        provisional extension.
        """
        key = (queue.key, *key)
        if self._refused:
            return None
        if key not in self._created and key not in self._seen:
            self._seen.append(key)
            return None
        found = self._created.get(key)
        if found is None:
            try:
                found = self._created[key] = _CommandBuffer(self._api, queue, launches, tuple(values))
            except DeviceError:
                self._refused = True
                return None
            if len(self._created) > _RETAINED:
                self._created.popitem(last=False)
        self._created.move_to_end(key)
        return found.enqueue(queue)


class _CommandBuffer:
    """One command buffer; ``values`` keeps alive the memory objects that its kernels do not refer to."""

    def __init__(
        self, api: CommandBufferAPI, queue: Queue, launches: Sequence[RecordedLaunch], values: tuple[Any, ...]
    ) -> None:
        self._api = api
        self.values = values
        self._launches = tuple(launches)
        self._last: cl.Event | None = None
        with driver_call("a command buffer"):
            self._handle = api.create(queue.cl)
        self._release = weakref.finalize(self, api.call, "clReleaseCommandBufferKHR", self._handle)
        self._release.atexit = False
        sync = c_uint32()
        before: tuple[int, Any] = (0, None)
        for launch in launches:
            local = (c_size_t * 3)(*launch.block)
            total = (c_size_t * 3)(*(g * b for g, b in zip(launch.grid, launch.block, strict=True)))
            api.call(
                "clCommandNDRangeKernelKHR", self._handle, None, None, launch.kernel.int_ptr, 3, None, total, local,
                *before, ctypes.byref(sync), None,
            )  # fmt: skip
            before = (1, (c_uint32 * 1)(sync.value))
        api.call("clFinalizeCommandBufferKHR", self._handle)

    def enqueue(self, queue: Queue) -> cl.Event | None:
        """Queue the command buffer; returns None while it is queued already, which drivers need not allow twice.

        A driver such as PoCL may say that its last event is complete a moment before it takes the command buffer again.
        """
        if self._last is not None and self._last.command_execution_status != cl.command_execution_status.COMPLETE:
            return None
        event = self._api.enqueue(queue.cl, self._handle)
        self._last = event or self._last
        return event
