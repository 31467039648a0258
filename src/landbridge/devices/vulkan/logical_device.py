"""LogicalDevice: one open device with its memory, its queue, and its work in flight."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence

from landbridge.devices.vulkan import calls, flags, structs_device, structs_image, structs_work
from landbridge.devices.vulkan.driver_objects import DriverObjects
from landbridge.devices.vulkan.instance import VulkanInstance
from landbridge.devices.vulkan.memory_types import (
    MemoryType,
    memory_kinds,
    scopes,
    texture_kind,
    with_properties_hidden,
)
from landbridge.devices.vulkan.memory_uses import UsedMemory
from landbridge.devices.vulkan.physical_device import (
    DMA_BUF,
    HOST_IMPORT,
    MEMORY_FD,
    PRESERVED,
    PhysicalDevice,
    enabled_features,
)
from landbridge.devices.vulkan.result import check, error_of
from landbridge.devices.vulkan.steps import CommandStep
from landbridge.devices.vulkan.structure import Chained, array, handles, texts
from landbridge.devices.vulkan.timeline import Clock, Point, Timeline
from landbridge.memory_kind import GLOBAL_SCOPE
from landbridge.targets.images import TEXTURE_SCOPE

#: The features that are enabled where the device has them; no others are, so that SPIR-V that needs more is refused.
_FEATURES = frozenset(
    {
        "timelineSemaphore",
        "shaderFloat16",
        "shaderFloat64",
        "shaderInt8",
        "shaderInt16",
        "shaderInt64",
        "storageBuffer8BitAccess",
        "storageBuffer16BitAccess",
        "shaderStorageImageExtendedFormats",
        *PRESERVED.values(),
    }
)
DL_VULKAN = 7  # kDLVulkan of dlpack.h
_EXTENSIONS = (HOST_IMPORT, MEMORY_FD, DMA_BUF)


class LogicalDevice(DriverObjects):
    """The device ``physical``, open as instance ``index``, with ``features`` enabled; ``scopes`` has each one's memory
    type.

    ``coherent`` and ``unified`` False use the device as if it had no coherent memory, or none it shares.
    """

    def __init__(
        self,
        instance: VulkanInstance,
        physical: PhysicalDevice,
        index: int,
        *,
        coherent: bool = True,
        unified: bool = True,
    ) -> None:
        self.index = index
        self.features = _FEATURES & physical.features
        self.extensions = tuple(e for e in _EXTENSIONS if e in physical.extensions)
        handle = _open(instance, physical, self.features, self.extensions)
        super().__init__(f"vulkan:{index}", physical, handle, calls.of_device(instance.calls, handle))
        self.scopes: dict[str, MemoryType] = scopes(
            with_properties_hidden(physical.memory_types, coherent=coherent, unified=unified)
        )
        self.kinds = memory_kinds(self.scopes, physical.memory_limits, DL_VULKAN, index)
        self.kinds[TEXTURE_SCOPE] = texture_kind(self.kinds[GLOBAL_SCOPE])
        self._instance = instance
        self._spare_commands: list[int] = []
        queue = ctypes.c_void_p()
        self.calls.vkGetDeviceQueue(self.handle, physical.queue_family, 0, ctypes.byref(queue))
        self.queue = queue.value
        self._pool = self.create(
            "CommandPool",
            structs_work.VkCommandPoolCreateInfo(
                flags=flags.COMMAND_POOL_RESET, queueFamilyIndex=physical.queue_family
            ),
        )
        #: The in-order queue that all threads share.
        self.stream = Timeline(self)

    def format_features(self, format: int) -> int:
        """Returns what images of ``format`` can be used for (VkFormatFeatureFlags)."""
        found = structs_image.VkFormatProperties()
        self._instance.calls.vkGetPhysicalDeviceFormatProperties(self.physical.handle, format, ctypes.byref(found))
        return int(found.optimalTilingFeatures)

    # --- work ----------------------------------------------------------------------------------------------------

    def submit(self, stream: Timeline, steps: Sequence[CommandStep], *, timed: bool = False) -> Point:
        """Queue ``steps``, in order, as one batch of ``stream``; ``timed`` reads the clock at its end."""
        with self._lock:
            self.check_open()
            self.collect()
            commands = self.begin_commands(flags.COMMAND_ONE_TIME)
            releases = self.encode(commands, steps)
            clock = Clock(self) if timed and self.physical.timestamp_bits else None
            if clock is not None:
                clock.encode(commands)
            self.end_commands(commands)
            uses = [use for step in steps for use in step.uses]
            point = self.enqueue(stream, commands, uses)
            point.clock = clock
            self.release_after(point, commands, releases)
            return point

    def give(self, stream: Timeline, step: CommandStep) -> Point | None:
        """Queue ``step`` on ``stream``; returns None where it is recorded instead."""
        if stream.recorder is not None:
            stream.recorder.add(step)
            return None
        return self.submit(stream, [step])

    def release_after(self, point: Point | None, commands: int, releases: Sequence[Callable[[], None]]) -> None:
        """Reuse ``commands`` and call ``releases`` once ``point`` is done."""

        def release() -> None:
            for each in releases:
                each()
            self._spare_commands.append(commands)

        if point is None:
            release()
        else:
            self.when(point.query, release)

    def encode(self, commands: int, steps: Sequence[CommandStep]) -> list[Callable[[], None]]:
        """Append ``steps`` to ``commands``, each ordered after the one before; returns what to call when they cannot
        run again.

        The first is ordered after all earlier work, too: work that is known to be done is not waited for by its
        semaphore, and without either its writes need not be visible.
        """
        releases = []
        for step in steps:
            self._order(commands, flags.STAGE_COMPUTE | flags.STAGE_TRANSFER, flags.ACCESS_READ | flags.ACCESS_WRITE)
            release = step.encode(self, commands)
            if release is not None:
                releases.append(release)
        # A semaphore alone does not make writes visible to the host.
        self._order(commands, flags.STAGE_HOST, flags.ACCESS_HOST_READ | flags.ACCESS_HOST_WRITE)
        return releases

    def begin_commands(self, usage: int) -> int:
        """Returns a command buffer that takes commands until ``end_commands``."""
        with self._lock:
            commands = self._spare_commands.pop() if self._spare_commands else self._new_commands()
            request = structs_work.VkCommandBufferBeginInfo(flags=usage)
            check(self.calls.vkBeginCommandBuffer(commands, ctypes.byref(request)), f"{self.name}: recording commands")
            return commands

    def end_commands(self, commands: int) -> None:
        """Make ``commands`` ready to be queued."""
        check(self.calls.vkEndCommandBuffer(commands), f"{self.name}: recording commands")

    def enqueue(self, stream: Timeline, commands: int, uses: Sequence[tuple[UsedMemory, bool]]) -> Point:
        """Queue ``commands`` on ``stream`` after all work before, and after what the stream was told to wait for."""
        with self._lock:
            self.check_open()
            before = dict(stream.waits)
            if stream.submitted:
                before[stream] = stream.submitted
            before = {other: count for other, count in before.items() if not other.reached(count)}
            count = stream.submitted + 1
            if before:
                request = ctypes.byref(_batch_after(before, stream, commands, count))
            else:
                request = stream.submit_request.of(commands, count)
            result = self.calls.vkQueueSubmit(self.queue, 1, request, 0)
            if result < 0:
                raise error_of(result, f"{self.name}: submitting work")
            stream.submitted = count
            stream.waits.clear()
            point = Point(stream, count)
            for memory, writes in uses:
                memory.note_use(stream, count, writes=writes)
            return point

    def _new_commands(self) -> int:
        request = structs_work.VkCommandBufferAllocateInfo(commandPool=self._pool, commandBufferCount=1)
        found = ctypes.c_void_p()
        result = self.calls.vkAllocateCommandBuffers(self.handle, ctypes.byref(request), ctypes.byref(found))
        check(result, f"{self.name}: a command buffer")
        return found.value or 0

    def _order(self, commands: int, stages: int, accesses: int) -> None:
        """Append a barrier: later ``accesses`` of ``stages`` see all earlier writes."""
        barrier = structs_work.VkMemoryBarrier(srcAccessMask=flags.ACCESS_WRITE, dstAccessMask=accesses)
        before = flags.STAGE_COMPUTE | flags.STAGE_TRANSFER
        self.calls.vkCmdPipelineBarrier(commands, before, stages, 0, 1, ctypes.byref(barrier), 0, None, 0, None)


def _batch_after(before: Mapping[Timeline, int], stream: Timeline, commands: int, count: int) -> Chained:
    """Returns the argument of ``vkQueueSubmit`` for ``commands`` of ``stream`` that come after counts of others."""
    values = structs_work.VkTimelineSemaphoreSubmitInfo(
        waitSemaphoreValueCount=len(before),
        pWaitSemaphoreValues=handles(*before.values()),
        signalSemaphoreValueCount=1,
        pSignalSemaphoreValues=handles(count),
    )
    return structs_work.VkSubmitInfo(
        values,
        waitSemaphoreCount=len(before),
        pWaitSemaphores=handles(*(other.semaphore for other in before)),
        pWaitDstStageMask=array(ctypes.c_uint32, [flags.STAGE_ALL] * len(before)),
        commandBufferCount=1,
        pCommandBuffers=array(ctypes.c_void_p, [commands]),
        signalSemaphoreCount=1,
        pSignalSemaphores=handles(stream.semaphore),
    )


def _open(
    instance: VulkanInstance, physical: PhysicalDevice, features: frozenset[str], extensions: Sequence[str]
) -> int:
    priorities = array(ctypes.c_float, [1.0])
    queue = structs_device.VkDeviceQueueCreateInfo(
        queueFamilyIndex=physical.queue_family, queueCount=1, pQueuePriorities=priorities
    )
    request = structs_device.VkDeviceCreateInfo(
        enabled_features(features),
        queueCreateInfoCount=1,
        pQueueCreateInfos=ctypes.pointer(queue),
        enabledExtensionCount=len(extensions),
        ppEnabledExtensionNames=texts(extensions),
    )
    handle = ctypes.c_void_p()
    result = instance.calls.vkCreateDevice(physical.handle, ctypes.byref(request), None, ctypes.byref(handle))
    check(result, f"opening the Vulkan device {physical.name}")
    return handle.value or 0
