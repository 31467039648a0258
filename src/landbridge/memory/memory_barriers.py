"""Barriers that belong to memory, whichever device uses it: those of a dma-buf, and those of a board's arrays."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import sys
import weakref
from typing import Any

import numpy as np

from landbridge.device.api import Device
from landbridge.device.memory_provider import Caching, MemoryProvider, Side
from landbridge.device.protocols import AccessMode
from landbridge.errors import DeviceError
from landbridge.memory.accesses import changing
from landbridge.memory.backing import Backing
from landbridge.memory.coherence_domain import CoherenceDomain
from landbridge.memory.host_array import address_of, byte_bounds

#: ``f_type`` of the file system that dma-bufs are in (include/uapi/linux/magic.h).
_DMA_BUF_MAGIC = 0x444D4142

#: ``_IOW('b', 0, struct dma_buf_sync)``, whose one member is 64 bits of flags.
_SYNC = 0x40086200
_DIRECTION = {"r": 1, "w": 2, "rw": 3}
_SIDE: dict[Side, int] = {"host": 0, "device": 4}


def is_dma_buf(fd: int) -> bool:
    """Returns whether ``fd`` is a dma-buf, by its file system: trying a barrier would affect other users of the
    memory.
    """
    if not sys.platform.startswith("linux"):
        return False
    facts = ctypes.create_string_buffer(256)
    if ctypes.CDLL(None, use_errno=True).fstatfs(fd, facts):
        return False
    return ctypes.c_long.from_buffer(facts).value & 0xFFFFFFFF == _DMA_BUF_MAGIC


class DmaBufBarriers:
    """The barriers of the dma-buf behind ``fd``, which the caller owns: ``DMA_BUF_IOCTL_SYNC``, which has no range.

    See Linux, Documentation/driver-api/dma-buf.rst, "CPU Access to DMA Buffer Objects". It acts on devices that are
    attached; for a device that a program drives by itself it may do nothing.
    """

    granule = None
    caching = Caching.CACHED

    def __init__(self, fd: int) -> None:
        self._fd = os.dup(fd)
        weakref.finalize(self, os.close, self._fd).atexit = False
        self.nbytes = os.lseek(self._fd, 0, os.SEEK_END)
        self._has_begun = False

    def sync(self, offset: int, nbytes: int, mode: AccessMode, side: Side) -> None:
        """Call the kernel's barrier, which covers all of the dma-buf."""
        if side == "device" and not self._has_begun:
            # New memory counts as written: udmabuf refuses an end without a beginning. One for writing brings nothing.
            self._call("w", "host")
        self._call(mode, side)

    def _call(self, mode: AccessMode, side: Side) -> None:
        while True:
            try:
                fcntl.ioctl(self._fd, _SYNC, struct.pack("=Q", _SIDE[side] | _DIRECTION[mode]))
                self._has_begun = True
                return
            except OSError as error:
                if error.errno not in (errno.EINTR, errno.EAGAIN):  # errors that ask for another try
                    raise DeviceError(f"DMA_BUF_IOCTL_SYNC for {mode!r} failed: {error}") from error

    def host_address(self) -> int | None:
        """Returns None, as each mapping has an address of its own."""
        return None

    def device_address(self, device: Device) -> int | None:
        """Returns None, as a device gets an address by importing the dma-buf."""
        return None


class ArrayBarriers:
    """The barriers of an array from a board's allocator, which has ``device_address`` or ``physical_address``.

    Its methods ``sync_to_device`` or ``flush``, and ``sync_from_device`` or ``invalidate``, act on all of it. It needs
    none where its ``coherent`` is true. The array is kept alive.
    """

    granule = None

    def __init__(self, array: np.ndarray[Any, Any], bus_address: int) -> None:
        self._array, self.bus_address = array, bus_address

    @property
    def caching(self) -> Caching:
        """Returns how the host caches the array, by its ``cacheable``; cached when it has none."""
        return Caching.CACHED if getattr(self._array, "cacheable", True) else Caching.UNCACHED

    @property
    def coherent(self) -> bool:
        """Returns whether host and devices see each other's writes without a barrier."""
        return getattr(self._array, "coherent", False) is True

    @property
    def nbytes(self) -> int:
        """Returns the bytes of the array."""
        low, high = byte_bounds(self._array)
        return high - low

    def sync(self, offset: int, nbytes: int, mode: AccessMode, side: Side) -> None:
        """Call the array's barrier, unless the host only read or is about to write everything."""
        if side == "device" and mode != "r":
            self._call("sync_to_device", "flush")
        elif side == "host" and mode != "w":
            self._call("sync_from_device", "invalidate")

    def host_address(self) -> int:
        """Returns the host address of the array."""
        return address_of(self._array)

    def device_address(self, device: Device) -> int:
        """Returns the bus address of the array, which is the same for every device of the board."""
        return self.bus_address

    def _call(self, *names: str) -> None:
        for name in names:
            if callable(method := getattr(self._array, name, None)):
                method()
                return


def barriers_of_array(owner: object) -> ArrayBarriers | None:
    """Returns the barriers of the board's array that ``owner`` is, or is a view of; None where it is none.

    Results that numpy computed from such an array have its attributes too, but lie in ordinary memory.
    """
    found: tuple[np.ndarray[Any, Any], int] | None = None
    while isinstance(owner, np.ndarray):
        if (address := _bus_address(owner)) is not None:
            found = owner, address  # a view may report the address of its base: the last one is right
        if owner.flags.owndata:
            return None
        owner = owner.base
    return None if found is None else ArrayBarriers(*found)


def _bus_address(array: np.ndarray[Any, Any]) -> int | None:
    if type(array) is np.ndarray:
        return None
    found = [getattr(array, name, None) for name in ("device_address", "physical_address")]
    return next((int(address) for address in found if isinstance(address, int | np.integer)), None)


def have_barriers(backing: Backing, origin: int, nbytes: int, provider: MemoryProvider) -> None:
    """Give ``nbytes`` bytes of ``backing`` from ``origin`` on the barriers of ``provider``, unless they have some."""
    with changing:
        if all(domain.device is not None for domain in backing.domains):
            backing.add_domain(CoherenceDomain(provider, origin, nbytes, memory=provider))
