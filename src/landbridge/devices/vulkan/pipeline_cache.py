"""PipelineCache: what the driver compiled of one module's kernels, read from a file and written to it.

The driver compiles a kernel when its pipeline is created, at the first launch, unless its pipeline cache has it. The
cache is written when no pipeline was added for a while, so that what a process that never ends compiled is in the file
too, and when the module or the device ends. Some drivers give none but its header (lavapipe of Mesa 22.3, which
compiles at the first dispatch, and keeps that in files of its own); then there is no file.
"""

from __future__ import annotations

import ctypes
import struct
import time

from landbridge.devices.driver_binaries import BinaryFile, DriverBinary, binary_file, processor
from landbridge.devices.vulkan import structs_work
from landbridge.devices.vulkan.driver_objects import DriverObjects
from landbridge.devices.vulkan.physical_device import PhysicalDevice
from landbridge.devices.vulkan.result import SUCCESS
from landbridge.errors import DeviceError
from landbridge.executable.digest import sha256
from landbridge.process.locks import new_lock

#: Seconds without a new pipeline after which those of a first run are taken to be there.
_QUIET = 1.0
#: VkPipelineCacheHeaderVersionOne: bytes of the header, its version, vendor, device, UUID of the driver's caches.
_HEADER = struct.Struct("<4I16s")
_VERSION = 1


class PipelineCache:
    """The pipeline cache of the module ``code`` on ``device``. ``handle`` is 0 where nothing is cached in files.

    Methods may be called from any thread.
    """

    def __init__(self, device: DriverObjects, code: bytes) -> None:
        self.handle = 0
        self._device = device
        self._lock = new_lock()
        self._changed_at = 0.0
        self._is_changed = False
        self._file = binary_file(_driver(device.physical), code)
        self._written = b""
        if self._file is not None:
            self.handle = self._create(self._file)

    def note_pipeline(self) -> None:
        """Records that a pipeline was created with this cache, which the driver may have added to."""
        if self._file is None:
            return
        with self._lock:
            self._changed_at = time.monotonic()
            if self._is_changed:
                return
            self._is_changed = True
        self._device.at_close(self.write)
        self._device.when(self._is_quiet, self.write)

    def write(self) -> None:
        """Writes what the driver has compiled since it was read or written; does nothing where that is impossible."""
        with self._lock:
            if not self._is_changed:
                return
            self._is_changed = False
        # Without the lock: the device calls this while it holds its own.
        self._device.not_at_close(self.write)
        content = self._content()
        digest = sha256([content])
        if self._file is not None and len(content) > _HEADER.size and digest != self._written:
            self._file.write(DriverBinary({}, content))
            self._written = digest

    def end(self) -> None:
        """Write it, and destroy it; for a device that is open."""
        self.write()
        if self.handle:
            self._device.destroy("PipelineCache", self.handle)

    def _is_quiet(self) -> bool:
        return time.monotonic() - self._changed_at >= _QUIET

    def _create(self, file: BinaryFile) -> int:
        found = file.read()
        content = b"" if found is None else found.binary
        if content and not _is_of(self._device.physical, content):
            file.remove()
            content = b""
        try:
            handle = self._device.create("PipelineCache", _request(content))
        except DeviceError:
            if not content:
                raise
            file.remove()
            return self._device.create("PipelineCache", _request(b""))
        self._written = sha256([content])
        return handle

    def _content(self) -> bytes:
        """Returns what the driver gives of the cache; empty where it gives nothing, or less than all."""
        device, size = self._device, ctypes.c_size_t()
        get = device.calls.vkGetPipelineCacheData
        if get(device.handle, self.handle, ctypes.byref(size), None) != SUCCESS:
            return b""
        content = ctypes.create_string_buffer(size.value)
        if get(device.handle, self.handle, ctypes.byref(size), content) != SUCCESS:
            return b""
        return content.raw[: size.value]


def _request(content: bytes) -> structs_work.VkPipelineCacheCreateInfo:
    data = ctypes.cast(ctypes.c_char_p(content), ctypes.c_void_p) if content else None
    return structs_work.VkPipelineCacheCreateInfo(initialDataSize=len(content), pInitialData=data)


def _is_of(physical: PhysicalDevice, content: bytes) -> bool:
    """Returns whether the header of ``content`` names this device and this build of its driver."""
    if len(content) < _HEADER.size:
        return False
    size, version, vendor, device, uuid = _HEADER.unpack_from(content)
    known = (physical.vendor_id, physical.device_id, physical.cache_uuid)
    return size >= _HEADER.size and version == _VERSION and (vendor, device, uuid) == known


def _driver(physical: PhysicalDevice) -> dict[str, object]:
    return {
        "format": "vulkan pipeline cache",
        "device": [physical.name, physical.vendor_id, physical.device_id],
        "driver": [physical.driver, physical.driver_version, physical.version, physical.cache_uuid.hex()],
        "processor": processor() if physical.device_type == "CPU" else "",
    }
