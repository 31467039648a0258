"""Buffer: memory behind a file descriptor, mapped at an address as aligned as was asked."""

from __future__ import annotations

import ctypes
import mmap
import os

from landbridge.errors import OutOfMemoryError

_FIXED = 0x10  # MAP_FIXED on every architecture that Linux has but one, which has no dma-bufs
_FAILED = ctypes.c_void_p(-1).value


class Buffer:
    """``nbytes`` bytes of the file ``fd``, which it closes, from ``address`` on: a multiple of ``alignment``."""

    def __init__(self, fd: int, nbytes: int, alignment: int) -> None:
        """Raises OutOfMemoryError where the kernel does not map it; ``fd`` is closed then, too."""
        self.fd, self.nbytes = fd, nbytes
        self._alive = True
        try:
            self._begin, self._length = _reserve(nbytes + alignment)
        except OutOfMemoryError:
            os.close(fd)
            raise
        self.address = -(-self._begin // alignment) * alignment
        found = _libc().mmap(self.address, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _FIXED, fd, 0)
        if found == _FAILED:
            reason = os.strerror(ctypes.get_errno())
            self.close()
            raise OutOfMemoryError(f"the kernel does not map {nbytes} bytes of the file that was given: {reason}")

    def close(self) -> None:
        """Unmap it and close the file: the memory goes when nobody else has it. Twice is once."""
        if self._alive:
            self._alive = False
            _libc().munmap(self._begin, self._length)
            os.close(self.fd)


def _reserve(length: int) -> tuple[int, int]:
    """Addresses that nothing else gets until they are unmapped."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    begin = _libc().mmap(None, length, 0, flags, -1, 0)
    if begin == _FAILED:
        reason = os.strerror(ctypes.get_errno())
        raise OutOfMemoryError(f"the kernel refused {length} bytes of addresses: {reason}")
    return begin, length


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
        ctypes.c_long,
    )
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return libc
