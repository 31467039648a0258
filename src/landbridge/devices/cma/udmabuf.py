"""Memory of ``/dev/udmabuf``: a dma-buf over the pages of a sealed in-memory file (include/uapi/linux/udmabuf.h)."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from pathlib import Path

from landbridge.devices.cma.capacity import check_capacity
from landbridge.devices.cma.source import Piece, unusable
from landbridge.errors import OutOfMemoryError

NODE = Path("/dev/udmabuf")
_LIMIT = Path("/sys/module/udmabuf/parameters/size_limit_mb")

#: ``_IOW('u', 0x42, struct udmabuf_create)``: descriptor of the file, flags, offset, size.
_CREATE = 0x40187542
_DATA = struct.Struct("=IIQQ")
_CLOEXEC = 1


class Udmabuf:
    """A source of dma-bufs of scattered ordinary pages, which the kernel pins as long as the dma-buf lives."""

    name = "udmabuf"
    unit = page_bytes = mmap.PAGESIZE
    cached = True
    physically_contiguous = None
    pinned = True
    capacity = None
    by_name = False

    def __init__(self, node: Path = NODE) -> None:
        self._node = node

    @property
    def max_bytes(self) -> int | None:
        """Returns the bytes that the module's parameter ``size_limit_mb`` allows for one buffer."""
        try:
            return int(_LIMIT.read_text()) << 20
        except (OSError, ValueError):
            return None

    def missing(self) -> str | None:
        """Returns why the node cannot be opened; None where it can."""
        return unusable(self._node)

    def allocate(self, nbytes: int, alignment: int) -> Piece:
        """Returns a dma-buf; raises OutOfMemoryError that names the limit of the module."""
        check_capacity(nbytes, str(self._node))
        file = os.memfd_create("landbridge", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(file, nbytes)
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)  # the kernel refuses a file without the seal
            node = os.open(self._node, os.O_RDWR | os.O_CLOEXEC)
            try:
                return Piece(fcntl.ioctl(node, _CREATE, bytearray(_DATA.pack(file, _CLOEXEC, 0, nbytes))))
            finally:
                os.close(node)
        except OSError as error:
            limit = "unknown" if self.max_bytes is None else f"{self.max_bytes} bytes"
            raise OutOfMemoryError(
                f"{self._node} made no dma-buf of {nbytes} bytes: {error.strerror}; its limit for one is {limit}, "
                f"set by {_LIMIT}"
            ) from error
        finally:
            os.close(file)
