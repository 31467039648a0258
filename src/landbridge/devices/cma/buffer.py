"""CmaBuffer: a piece of memory that is mapped at an aligned address."""

from __future__ import annotations

import ctypes
import mmap
import os

from landbridge.devices.cma.source import Piece
from landbridge.errors import OutOfMemoryError

_FIXED = 0x10  # MAP_FIXED on all but one architecture of Linux, and that one has no dma-bufs
_FAILED = ctypes.c_void_p(-1).value


class CmaBuffer:
    """``nbytes`` bytes of ``piece``, mapped from ``address`` on, a multiple of ``alignment``; it owns the piece.

    ``provider``: the barriers and addresses of the memory, where the piece has them.
    """

    def __init__(self, piece: Piece, nbytes: int, alignment: int) -> None:
        """Map ``piece``; raises OutOfMemoryError, after releasing the piece, where the kernel refuses."""
        self.fd, self.nbytes = piece.fd, nbytes
        self._piece, self._alive = piece, True
        try:
            self._begin, self._length = _reserve(nbytes + alignment)
        except OutOfMemoryError:
            self._give_back()
            raise
        self.address = -(-self._begin // alignment) * alignment
        rights, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _FIXED
        found = _libc().mmap(self.address, nbytes, rights, flags, piece.fd, piece.offset)
        if found == _FAILED:
            reason = os.strerror(ctypes.get_errno())
            self.close()
            raise OutOfMemoryError(f"the kernel does not map {nbytes} bytes of the file that was given: {reason}")
        self.provider = None if piece.provider is None else piece.provider(self.address)

    def close(self) -> None:
        """Unmap the memory and close the file; the memory is freed when nobody else has it. A second call does
        nothing.
        """
        if self._alive:
            self._alive = False
            _libc().munmap(self._begin, self._length)
            self._give_back()

    def _give_back(self) -> None:
        os.close(self.fd)
        if self._piece.give_back is not None:
            self._piece.give_back()


def _reserve(length: int) -> tuple[int, int]:
    """Returns a range of reserved addresses: begin and length. Nothing else gets them until they are unmapped."""
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
