"""The handles of ``sim:board``: blocks that the host sees through caches, and blocks that other processes can map."""

from __future__ import annotations

import mmap
import os

import numpy as np

from landbridge.testing.lazy_instance import LazyBlock, LazyInstance


class CachedBlock(LazyBlock):
    """A block whose ``data`` the device sees and whose ``host`` bytes the host's caches hold: barriers copy between the
    two.
    """

    def __init__(self, instance: LazyInstance, scope: str, nbytes: int, alignment: int) -> None:
        super().__init__(instance, scope, nbytes, alignment)
        seen = LazyBlock(instance, scope, nbytes, alignment)
        self.host = seen.data
        self.host_address = seen.address


class ExportedBlock(LazyBlock):
    """A block whose bytes are those of an in-memory file, ``file``; any process that maps it keeps it alive."""

    def __init__(self, instance: LazyInstance, scope: str, nbytes: int, alignment: int) -> None:
        super().__init__(instance, scope, 0, alignment)
        self.file = os.memfd_create("sim:board", os.MFD_CLOEXEC)
        os.ftruncate(self.file, max(nbytes, 1))
        self.data = np.frombuffer(mmap.mmap(self.file, max(nbytes, 1)), np.uint8)[:nbytes]
        self.address = int(self.data.ctypes.data)

    def release(self) -> None:
        """Closes the file and unmaps its bytes; other holders of the file keep them."""
        os.close(self.file)
        self.data = np.full(self.data.nbytes, 0xA5, np.uint8)
