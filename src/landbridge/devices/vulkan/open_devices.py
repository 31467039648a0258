"""OpenDevices: the devices that the loader's drivers find, and those of them that are open."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from weakref import finalize

from landbridge.devices.vulkan.instance import VulkanInstance
from landbridge.devices.vulkan.logical_device import LogicalDevice
from landbridge.devices.vulkan.physical_device import PhysicalDevice
from landbridge.devices.vulkan.probe import probe
from landbridge.errors import DeviceError, DeviceIndexError, DeviceLostError, InputError
from landbridge.process.locks import new_lock

_OPTIONS = ("coherent", "unified")


class OpenDevices:
    """Connects to the loader at the first query, and opens each device at its first use.

    ``defaults`` are the options that devices are opened with. Methods may be called from any thread.
    """

    def __init__(self, **defaults: bool) -> None:
        self._defaults = defaults
        self._lock = new_lock()
        self._instance: VulkanInstance | None = None
        self._failure = ""
        self._opened: dict[int, LogicalDevice] = {}
        self._options: dict[int, dict[str, bool]] = {}
        # Drivers have threads: they end with this, and must have stopped when the interpreter ends.
        finalize(self, _close_all, self._opened, os.getpid())

    @property
    def physical(self) -> Sequence[PhysicalDevice]:
        """Returns the devices that exist; none without a loader or a driver."""
        instance = self._connect()
        return () if instance is None else instance.devices

    @property
    def diagnostics(self) -> Sequence[str]:
        """Returns what is missing, and the devices that are not used, with the reason."""
        instance = self._connect()
        return (self._failure,) if instance is None else tuple(instance.diagnostics)

    def logical(self, index: int) -> LogicalDevice:
        """Returns device ``index``, opened if it was not. Raises DeviceIndexError, and DeviceError when it does not
        work.
        """
        found = self._opened.get(index)
        if found is not None:
            return found
        with self._lock:
            if index not in self._opened:
                self._opened[index] = self._open(index, **self._options.get(index, self._defaults))
            return self._opened[index]

    def open(self, index: int, **options: object) -> None:
        """Open device ``index`` with ``options`` over the defaults; a device that is open with others is reopened,
        empty.
        """
        given = {name: value for name, value in options.items() if name in _OPTIONS and isinstance(value, bool)}
        if len(given) < len(options):
            raise InputError(f"vulkan:{index} cannot be opened with {options}; legal: {' and '.join(_OPTIONS)}, bools")
        wanted = self._defaults | given
        with self._lock:
            if index not in self._opened or self._options.get(index, self._defaults) != wanted:
                self.close(index)
                self._opened[index] = self._open(index, **wanted)
                self._options[index] = wanted

    def reset(self, index: int) -> None:
        """Close device ``index`` and open it with the options it had."""
        with self._lock:
            self.close(index)
            self._opened[index] = self._open(index, **self._options.get(index, self._defaults))

    def close(self, index: int) -> None:
        """Wait for what is queued on device ``index``, and destroy everything made on it."""
        with self._lock:
            opened = self._opened.pop(index, None)
        if opened is not None:
            opened.close()

    def _connect(self) -> VulkanInstance | None:
        with self._lock:
            if self._instance is None and not self._failure:
                try:
                    self._instance = VulkanInstance()
                except DeviceError as error:
                    self._failure = str(error)
            return self._instance

    def _open(self, index: int, *, coherent: bool = True, unified: bool = True) -> LogicalDevice:
        instance, found = self._connect(), self.physical
        if instance is None or not 0 <= index < len(found):
            legal = f"0 to {len(found) - 1}" if found else "none: " + "; ".join(self.diagnostics)
            raise DeviceIndexError(f"device vulkan:{index} does not exist; legal indices: {legal}")
        device = LogicalDevice(instance, found[index], index, coherent=coherent, unified=unified)
        try:
            probe(device)
        except BaseException:
            device.close()
            raise
        return device


def _close_all(opened: dict[int, LogicalDevice], process: int) -> None:
    """Close every device, lost ones too, in the process that opened them."""
    while opened and os.getpid() == process:
        _, device = opened.popitem()
        with suppress(DeviceLostError):
            device.close()
