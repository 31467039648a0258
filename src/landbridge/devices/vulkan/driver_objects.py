"""DriverObjects: an open device with its driver's objects, which are created and destroyed through it."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from landbridge.devices.vulkan.calls import Calls
from landbridge.devices.vulkan.physical_device import PhysicalDevice
from landbridge.devices.vulkan.result import SUCCESS, check
from landbridge.devices.vulkan.structure import Chained
from landbridge.errors import DeviceError, DeviceLostError
from landbridge.process.locks import new_lock


class DriverObjects:
    """The driver's ``handle`` of a device, its ``calls``, and the objects made with them, which are destroyed with it.

    Methods may be called from any thread.
    """

    def __init__(self, name: str, physical: PhysicalDevice, handle: int, calls: Calls) -> None:
        self.name = name
        self.physical = physical
        self.handle = handle
        self.calls = calls
        self.is_open = True
        self._lock = new_lock()
        self._owned: dict[tuple[str, int], int] = {}
        self._deferred: deque[Callable[[], None]] = deque()
        self._waiting: list[tuple[Callable[[], bool], Callable[[], None]]] = []
        self._at_close: list[Callable[[], None]] = []

    def create(self, kind: str, request: Chained) -> int:
        """Returns a new object of ``kind`` ("Buffer", "Memory", ...); it ends by ``destroy``, ``retire`` or with the
        device.
        """
        self.check_open()
        handle = ctypes.c_uint64()
        maker = "vkAllocateMemory" if kind == "Memory" else f"vkCreate{kind}"
        result = getattr(self.calls, maker)(self.handle, ctypes.byref(request), None, ctypes.byref(handle))
        check(result, f"{self.name}: {maker}")
        self.owned(kind, handle.value)
        return handle.value

    def owned(self, kind: str, handle: int) -> None:
        """Record ``handle`` to be destroyed with the device. Drivers may give one handle twice: each time counts."""
        with self._lock:
            self._owned[kind, handle] = self._owned.get((kind, handle), 0) + 1

    def destroy(self, kind: str, handle: int) -> None:
        """Destroy an object of ``create``; does nothing once the device is closed."""
        with self._lock:
            left = self._owned.get((kind, handle), 0)
            if left > 1:
                self._owned[kind, handle] = left - 1
            elif left:
                del self._owned[kind, handle]
            if left:
                self._end(kind, handle)

    def when(self, done: Callable[[], bool], action: Callable[[], None]) -> None:
        """Make ``collect`` call ``action`` once ``done()`` is true; never, when the device is closed before."""
        with self._lock:
            self._waiting.append((done, action))

    def at_close(self, action: Callable[[], None]) -> None:
        """Make ``close`` call ``action`` while the driver's objects exist; never, when the device is lost."""
        with self._lock:
            self._at_close.append(action)

    def not_at_close(self, action: Callable[[], None]) -> None:
        """Take back an ``action`` of ``at_close``."""
        with self._lock:
            if action in self._at_close:
                self._at_close.remove(action)

    def defer(self, action: Callable[[], None]) -> None:
        """Queue ``action`` for a thread that is not in the middle of other work: for finalizers."""
        self._deferred.append(action)

    def retire(self, kind: str, handle: int) -> None:
        """Destroy ``handle`` soon; for finalizers."""
        self.defer(lambda: self.destroy(kind, handle))

    def collect(self) -> None:
        """Release what was waiting for work that is done by now."""
        with self._lock:
            if not self.is_open:
                return
            for _ in range(len(self._deferred)):  # an action may defer itself once more
                self._deferred.popleft()()
            waiting, self._waiting = self._waiting, []
            for done, action in waiting:
                if done():
                    action()
                else:
                    self._waiting.append((done, action))

    def check_open(self) -> None:
        """Raises DeviceLostError when the device is closed, so that no handle of it reaches the driver."""
        if not self.is_open:
            raise DeviceLostError(f"{self.name} was closed; what was made on it is gone")

    def close(self) -> None:
        """Wait for the queue, then destroy everything. A lost device waits for nothing; a second call does nothing."""
        with self._lock:
            if not self.is_open:
                return
            if self.calls.vkDeviceWaitIdle(self.handle) == SUCCESS:
                with suppress(DeviceError):  # lost in the meantime
                    self.collect()
                    for action in tuple(self._at_close):
                        action()
            self.is_open = False
            self._at_close.clear()
            self._waiting.clear()
            for (kind, handle), times in reversed(tuple(self._owned.items())):
                for _ in range(times):
                    self._end(kind, handle)
            self._owned.clear()
            self.calls.vkDestroyDevice(self.handle, None)

    def _end(self, kind: str, handle: int) -> None:
        ender = "vkFreeMemory" if kind == "Memory" else f"vkDestroy{kind}"
        getattr(self.calls, ender)(self.handle, handle, None)
