"""What a program needs of pynq on the emulated board: the same names, over memory of the kernel's contiguous area.

``memory`` says what lies between the processor and that memory. In QEMU the processor has no caches, so that
``MAPPED``, the default, is right without a barrier. ``CACHED`` has a cache in the worst case: an array is a copy, which
reaches the memory by ``flush`` and sees it by ``invalidate`` alone. ``NEVER_FLUSHED`` is that one with a fault.
"""

import array
import fcntl
import mmap
import os
import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from logic_engine import READ, WRITE_FRAME, Engine

MAPPED, CACHED, NEVER_FLUSHED = "mapped", "cached", "never flushed"
memory = MAPPED

_HEAP, _ALLOCATE = "/dev/dma_heap/reserved", 0xC0184800  # DMA_HEAP_IOCTL_ALLOC
_SYNC = 0x40086200  # DMA_BUF_IOCTL_SYNC
_READ, _WRITE, _END = 1, 2, 4
_FRAME = (1 << 55) - 1


class PynqBuffer(np.ndarray):
    """As ``pynq.buffer.PynqBuffer``: views of one have its attributes, too."""

    buffer = None
    device_address = None
    coherent = None

    def __array_finalize__(self, other):
        if isinstance(other, PynqBuffer) and other.coherent is not None:
            self.buffer, self.coherent = other.buffer, other.coherent
            self.device_address = other.device_address + self.ctypes.data - other.ctypes.data

    @property
    def physical_address(self):
        return self.device_address

    @property
    def cacheable(self):
        return not self.coherent

    def flush(self):
        self.buffer.sync(_WRITE | _END)

    def invalidate(self):
        self.buffer.sync(_READ)


class _Buffer:
    """A dma-buf of the kernel's contiguous area, and what the processor has of it."""

    def __init__(self, nbytes):
        heap = os.open(_HEAP, os.O_RDWR)
        data = struct.pack("=QIIQ", nbytes, 0, os.O_RDWR, 0)
        self._file = struct.unpack("=QIIQ", fcntl.ioctl(heap, _ALLOCATE, data))[1]
        os.close(heap)
        self._pages = mmap.mmap(self._file, nbytes)
        self.begin = _physical(self._pages)
        self.held = self._pages if memory == MAPPED else bytearray(nbytes)
        self._flushes = memory != NEVER_FLUSHED

    def sync(self, flags):
        fcntl.ioctl(self._file, _SYNC, struct.pack("=Q", flags))
        if self.held is not self._pages:
            if flags & _END and self._flushes:
                self._pages[:] = self.held
            elif not flags & _END:
                self.held[:] = self._pages[:]


def _physical(pages):
    """The address of adjacent pages, which the kernel's pagemap must show to be so."""
    first = np.frombuffer(pages, np.uint8)
    touched = first[:: mmap.PAGESIZE].sum()  # what is not mapped yet has no address
    with Path("/proc/self/pagemap").open("rb", buffering=0) as file:
        file.seek(first.ctypes.data // mmap.PAGESIZE * 8)
        entries = array.array("Q", file.read(len(pages) // mmap.PAGESIZE * 8))
    frames = [entry & _FRAME for entry in entries]
    assert frames == list(range(frames[0], frames[0] + len(frames))), (touched, "the pages are not adjacent")
    return frames[0] * mmap.PAGESIZE


def allocate(shape, dtype, target=None, *, cacheable=True):
    """As ``pynq.allocate``."""
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    buffer = _Buffer(-(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE)
    allocated = PynqBuffer(shape, dtype, buffer=buffer.held)
    allocated.buffer, allocated.coherent, allocated.device_address = buffer, not cacheable, buffer.begin
    return allocated


class Overlay:
    """As ``pynq.Overlay``, with one DMA engine."""

    def __init__(self, bitstream):
        engine = Engine()

        def channel(command):
            def transfer(allocated):
                engine.start(command, allocated.device_address, allocated.nbytes)

            return SimpleNamespace(transfer=transfer, wait=engine.wait)

        self.camera_dma = SimpleNamespace(recvchannel=channel(WRITE_FRAME), sendchannel=channel(READ))
