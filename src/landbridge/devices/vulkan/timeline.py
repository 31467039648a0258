"""Streams and events: a stream is a semaphore that counts its batches, an event is a count it reaches.

Every batch waits for the one before it on its stream, and so orders execution and memory on any queue of the driver
(Vulkan 1.3 specification, section 7.4 "Semaphores").
"""

from __future__ import annotations

import ctypes
import time
from functools import partial
from typing import Any

from landbridge.devices.vulkan import flags, structs_work
from landbridge.devices.vulkan.driver_objects import DriverObjects
from landbridge.devices.vulkan.requests import SubmitRequest, WaitRequest
from landbridge.devices.vulkan.result import TIMEOUT, check
from landbridge.devices.vulkan.steps import VulkanRecorder

#: Longest sleep inside the driver, in seconds, so that Ctrl-C is answered.
_SLICE = 0.05


class Timeline:
    """One in-order stream of ``device``. ``submitted`` counts the batches given to the queue; ``alive`` until it is
    freed.

    ``waits`` are counts of other streams that the next batch waits for. While the stream is recorded, ``recorder``
    takes its work.
    """

    def __init__(self, device: DriverObjects) -> None:
        kind = structs_work.VkSemaphoreTypeCreateInfo(semaphoreType=flags.SEMAPHORE_TIMELINE, initialValue=0)
        self.device = device
        self.semaphore = device.create("Semaphore", structs_work.VkSemaphoreCreateInfo(kind))
        self.submitted = 0
        self.alive = True
        self.waits: dict[Timeline, int] = {}
        self.recorder: VulkanRecorder | None = None
        #: For batches that wait for nothing; used by who has the lock of ``device``.
        self.submit_request = SubmitRequest(self.semaphore)
        self._spare_requests = [WaitRequest(self.semaphore)]
        self._completed = 0

    def reached(self, count: int) -> bool:
        """Returns whether ``count`` batches are done."""
        if self._completed < count:
            self.device.check_open()
            value = ctypes.c_uint64()
            calls = self.device.calls
            result = calls.vkGetSemaphoreCounterValue(self.device.handle, self.semaphore, ctypes.byref(value))
            check(result, "asking how far a stream is")
            self._completed = max(self._completed, value.value)
        return self._completed >= count

    def wait(self, count: int, timeout: float | None = None) -> bool:
        """Wait at most ``timeout`` seconds (None: for ever), interruptibly; returns whether ``count`` batches
        are done.
        """
        if self.reached(count):
            return True
        try:
            request = self._spare_requests.pop()
        except IndexError:  # another thread waits
            request = WaitRequest(self.semaphore)
        try:
            return self._wait(count, request.of(count), timeout)
        finally:
            self._spare_requests.append(request)

    def _wait(self, count: int, request: Any, timeout: float | None) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _SLICE if deadline is None else max(0.0, min(_SLICE, deadline - time.monotonic()))
            self.device.check_open()
            result = self.device.calls.vkWaitSemaphores(self.device.handle, request, int(left * 1e9))
            check(result, "waiting for a stream")
            if result != TIMEOUT:
                self._completed = max(self._completed, count)
                return True
            if deadline is not None and time.monotonic() >= deadline:
                return False

    def wait_for(self, other: Timeline, count: int) -> None:
        """Make the next batch wait for the first ``count`` of ``other``; its own earlier batches come first anyway."""
        if other is not self:
            self.waits[other] = max(count, self.waits.get(other, 0))

    def __del__(self) -> None:
        if hasattr(self, "semaphore"):
            self.device.defer(partial(_end, self.device, self.semaphore, self.submitted))

    def drain(self) -> None:
        """Wait for all that was submitted, and for what the next batch would have waited for."""
        for other, count in tuple(self.waits.items()):
            other.wait(count)
        self.wait(self.submitted)


def _end(device: DriverObjects, semaphore: int, count: int) -> None:
    """Destroy the ``semaphore`` of a stream that nothing refers to any more, when its ``count`` batches are done."""
    value = ctypes.c_uint64()
    device.calls.vkGetSemaphoreCounterValue(device.handle, semaphore, ctypes.byref(value))
    if value.value >= count:
        device.destroy("Semaphore", semaphore)
    else:
        device.defer(partial(_end, device, semaphore, count))


class Point:
    """An Event: the first ``count`` batches of ``stream``. ``clock`` holds its time where it is timed."""

    __slots__ = ("clock", "count", "stream")

    def __init__(self, stream: Timeline, count: int, clock: Clock | None = None) -> None:
        self.stream = stream
        self.count = count
        self.clock = clock

    def query(self) -> bool:
        """Returns whether all work before this point has completed."""
        return self.stream.reached(self.count)

    def synchronize(self, timeout: float | None = None) -> bool:
        """Wait at most ``timeout`` seconds (None: for ever), interruptibly; returns whether it has completed."""
        return self.stream.wait(self.count, timeout)


class Clock:
    """One reading of the device's clock, of which ``bits`` are valid and one tick is ``period`` nanoseconds."""

    def __init__(self, device: DriverObjects) -> None:
        self.device = device
        self.bits = device.physical.timestamp_bits
        self.period = device.physical.limits.timestampPeriod
        request = structs_work.VkQueryPoolCreateInfo(queryType=flags.QUERY_TIMESTAMP, queryCount=1)
        self.pool = device.create("QueryPool", request)

    def encode(self, commands: int) -> None:
        """Append a reading of the clock after all earlier work in ``commands``."""
        calls = self.device.calls
        calls.vkCmdResetQueryPool(commands, self.pool, 0, 1)
        calls.vkCmdWriteTimestamp(commands, flags.STAGE_BOTTOM, self.pool, 0)

    def ticks(self) -> int:
        """Returns the ticks that were read; valid when the batch is done."""
        self.device.check_open()
        value = ctypes.c_uint64()
        result = self.device.calls.vkGetQueryPoolResults(
            self.device.handle, self.pool, 0, 1, 8, ctypes.byref(value), 8, flags.QUERY_RESULT_64
        )
        check(result, "reading the device's clock")
        return value.value

    def __del__(self) -> None:
        self.device.retire("QueryPool", self.pool)


def elapsed_ms(start: Point, end: Point) -> float | None:
    """Returns the milliseconds between two completed points by the device's clock; None where they were not timed.

    They are negative when ``start`` came after ``end``: the counter wraps, so the shorter difference is meant.
    """
    if start.clock is None or end.clock is None or not (start.query() and end.query()):
        return None
    half = 1 << (end.clock.bits - 1)
    ticks = (end.clock.ticks() - start.clock.ticks() + half) % (2 * half) - half
    return float(ticks * end.clock.period / 1e6)
