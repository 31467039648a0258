"""Arguments of the calls that every run makes: structures that are made once for a stream and used again.

Making one takes longer than the call of the driver that it is for.
"""

from __future__ import annotations

import ctypes
from typing import Any

from landbridge.devices.vulkan import structs_work
from landbridge.devices.vulkan.structure import handles


class SubmitRequest:
    """The argument of ``vkQueueSubmit`` for one command buffer that waits for nothing and signals ``semaphore``.

    One thread at a time uses it.
    """

    __slots__ = ("_batch", "_commands", "_count", "pointer")

    def __init__(self, semaphore: int) -> None:
        self._commands, self._count = (ctypes.c_void_p * 1)(), handles(0)
        values = structs_work.VkTimelineSemaphoreSubmitInfo(
            signalSemaphoreValueCount=1, pSignalSemaphoreValues=self._count
        )
        self._batch = structs_work.VkSubmitInfo(
            values,
            commandBufferCount=1,
            pCommandBuffers=self._commands,
            signalSemaphoreCount=1,
            pSignalSemaphores=handles(semaphore),
        )
        self.pointer: Any = ctypes.byref(self._batch)

    def of(self, commands: int, count: int) -> Any:
        """Returns a pointer to the request to queue ``commands``, which sets the semaphore to ``count``."""
        self._commands[0] = commands
        self._count[0] = count
        return self.pointer


class WaitRequest:
    """The argument of ``vkWaitSemaphores`` for one ``semaphore``. One thread at a time uses it."""

    __slots__ = ("_count", "_request", "pointer")

    def __init__(self, semaphore: int) -> None:
        self._count = handles(0)
        self._request = structs_work.VkSemaphoreWaitInfo(
            semaphoreCount=1, pSemaphores=handles(semaphore), pValues=self._count
        )
        self.pointer: Any = ctypes.byref(self._request)

    def of(self, count: int) -> Any:
        """Returns a pointer to the request to wait until the semaphore has ``count``."""
        self._count[0] = count
        return self.pointer
