"""MappedFile: memory behind a file descriptor, mapped into this process: a dma-buf, or an in-memory file.

The barriers of a dma-buf are the memory's, whichever device uses it (``memory.memory_barriers``).
"""

from __future__ import annotations

import mmap
import os

import numpy as np

from landbridge.device.import_source import DmaBuf
from landbridge.device.protocols import AccessMode
from landbridge.errors import ZeroCopyError


class MappedFile:
    """Memory of ``source`` mapped into this process, for reading, or with ``access`` "rw" or "w" for writing too.

    ``address`` is that of its first byte. ``users`` counts those who use it: the last ``release`` unmaps it. The
    descriptor is duplicated, so the caller may close its own.
    """

    def __init__(self, source: DmaBuf, access: AccessMode) -> None:
        """Map the memory; raises ZeroCopyError when the kernel refuses."""
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

    def release(self) -> None:
        """Give up one use; after the last one the memory is unmapped, so no array over it may exist then."""
        self.users -= 1
        if not self.users:
            self._mapping.close()
            os.close(self._fd)
