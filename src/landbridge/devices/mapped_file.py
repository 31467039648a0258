"""Memory behind a file descriptor, mapped into this process: a dma-buf, or an in-memory file.

Others write a dma-buf past the caches of this CPU, so that an access of the host has to stand between two calls of
``DMA_BUF_IOCTL_SYNC`` (Linux, Documentation/driver-api/dma-buf.rst, "CPU Access to DMA Buffer Objects"; the flags are
those of include/uapi/linux/dma-buf.h). Other files are coherent and have no such call.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct

import numpy as np

from landbridge.device.import_source import DmaBuf
from landbridge.device.protocols import AccessMode
from landbridge.errors import DeviceError, ZeroCopyError

#: ``_IOW('b', 0, struct dma_buf_sync)``, whose one member is 64 bits of flags.
_SYNC = 0x40086200
_DIRECTION = {"r": 1, "w": 2, "rw": 3}
_START, _END = 0, 4


class MappedFile:
    """``source`` in the memory of this process, from ``address`` on, until its last of ``users`` lets go.

    The descriptor stays its owner's.
    """

    def __init__(self, source: DmaBuf, access: AccessMode) -> None:
        """Raises ZeroCopyError when the kernel does not map it so."""
        low = source.offset // mmap.PAGESIZE * mmap.PAGESIZE
        protection = mmap.PROT_READ | (0 if access == "r" else mmap.PROT_WRITE)
        try:
            self._fd = os.dup(source.fd)
        except OSError as error:
            raise ZeroCopyError(f"no file is behind descriptor {source.fd} ({error}); give one that is open") from error
        try:
            length = source.offset - low + max(source.nbytes, 1)
            self._mapping = mmap.mmap(self._fd, length, mmap.MAP_SHARED, protection, offset=low)
        except (OSError, ValueError, OverflowError) as error:
            os.close(self._fd)
            raise ZeroCopyError(
                f"the kernel does not map {source.nbytes} bytes from {source.offset} on of the file behind descriptor "
                f"{source.fd} for {access!r} ({error}); give a range inside a dma-buf or memfd, opened for that"
            ) from error
        self.address = int(np.frombuffer(self._mapping, np.uint8).ctypes.data) + source.offset - low
        self.users = 1
        try:
            self._sync(_START, "r")
            self._sync(_END, "r")
            self.is_dma_buf = True
        except OSError as error:
            if error.errno not in (errno.ENOTTY, errno.EINVAL):
                self.let_go()
                raise DeviceError(f"DMA_BUF_IOCTL_SYNC of descriptor {source.fd} failed: {error}") from error
            self.is_dma_buf = False

    def begin(self, mode: AccessMode) -> None:
        """The host sees what devices wrote; waits for it."""
        self._barrier(_START, mode)

    def end(self, mode: AccessMode) -> None:
        """Devices see what the host wrote."""
        self._barrier(_END, mode)

    def let_go(self) -> None:
        """Unmap it after the last user; arrays over it are gone by then."""
        self.users -= 1
        if not self.users:
            self._mapping.close()
            os.close(self._fd)

    def _barrier(self, side: int, mode: AccessMode) -> None:
        if not self.is_dma_buf:
            return
        try:
            self._sync(side, mode)
        except OSError as error:
            raise DeviceError(f"DMA_BUF_IOCTL_SYNC for {mode!r} failed: {error}") from error

    def _sync(self, side: int, mode: AccessMode) -> None:
        while True:
            try:
                fcntl.ioctl(self._fd, _SYNC, struct.pack("=Q", side | _DIRECTION[mode]))
                return
            except OSError as error:
                if error.errno not in (errno.EINTR, errno.EAGAIN):  # which ask for another try
                    raise
