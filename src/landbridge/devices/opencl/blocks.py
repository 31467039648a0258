"""MemoryBlocks, the handles of Spaces: a buffer of the driver with its host side, or an image."""

from __future__ import annotations

import ctypes
from dataclasses import field
from typing import Any

import pyopencl as cl

from landbridge.device.checks import check_inside
from landbridge.device.pixels import PixelRows
from landbridge.errors import InputError, UseAfterFreeError
from landbridge.records import record


@record(eq=False, slots=True)
class BufferBlock:
    """``nbytes`` bytes of ``buffer`` from ``origin`` on, in scope ``scope`` of the context of ``device``.

    ``address`` is where the host sees them, None until the driver was asked, or when it cannot map them. ``svm`` is the
    shared allocation under the buffer, where there is one: kernels get its pointer then, not the buffer. ``keep`` keeps
    the memory alive. ``mappings`` are those open for the host, by (offset, nbytes). ``uses`` has the last command of
    each queue that used the block.
    """

    context: cl.Context
    scope: str
    buffer: cl.Buffer
    origin: int
    nbytes: int
    address: int | None = None
    svm: cl.SVMAllocation | None = None
    pointer: int | None = None
    readonly: bool = False
    keep: object = None
    alive: bool = True
    mappings: dict[tuple[int, int], Any] = field(default_factory=dict)
    uses: dict[int, cl.Event] = field(default_factory=dict)
    _parts: dict[int, cl.Buffer] = field(default_factory=dict)

    def part(self, byte_offset: int, alignment: int) -> Any:
        """Returns the kernel argument for the bytes from ``byte_offset`` on: a buffer, or a shared pointer.

        Raises InputError for an offset that is no multiple of ``alignment`` where the driver has no pointers.
        """
        if self.pointer is not None:
            return cl.SVM(host_bytes(self.pointer + byte_offset, self.nbytes - byte_offset))
        start = self.origin + byte_offset
        if start == 0:
            return self.buffer
        known = self._parts.get(start)
        if known is None:
            if start % alignment:
                raise InputError(
                    f"a kernel cannot be given the bytes from {byte_offset} on of a space on an OpenCL device: offsets "
                    f"are multiples of {alignment} (CL_DEVICE_MEM_BASE_ADDR_ALIGN); use memory of scope global.svm"
                )
            known = self._parts[start] = self.buffer.get_sub_region(start, self.buffer.size - start)
        return known

    def check(self, byte_offset: int, nbytes: int) -> None:
        """Raises unless the block has ``nbytes`` bytes from ``byte_offset`` on."""
        if not self.alive:
            raise UseAfterFreeError("this space of an OpenCL device was freed; allocate another one")
        check_inside(byte_offset, nbytes, self.nbytes, "opencl")

    @property
    def is_divided(self) -> bool:
        """Returns whether kernels have been given parts of the buffer."""
        return bool(self._parts)

    def release_parts(self) -> None:
        """Release the parts that kernels were given, whoever still holds them; their last use is over.

        All end with the buffer, so that each lies in those that begin before it: the last to begin goes first. NVIDIA's
        driver 580 ends the process in clReleaseMemObject of a part while there is one inside it that a kernel was given
        later.
        """
        parts, self._parts = self._parts, {}
        for start in sorted(parts, reverse=True):
            parts[start].release()

    def release(self) -> None:
        """Free the driver's memory; the last use is over.

        Parts are released before their buffer, now: recordings may hold them longer, and not every driver keeps a
        buffer for parts that outlive it, as it should (OpenCL 3.0 specification, section 5.4.1 "Retaining and
        Releasing").
        """
        self.alive = False
        self.release_parts()
        self.buffer.release()
        if self.svm is not None:
            self.svm.release()
        self.keep = None


@record(eq=False, slots=True)
class ImageBlock(PixelRows):
    """An image of ``height`` rows of ``width`` pixels of ``pixel_bytes``; its rows are dense in copies."""

    context: cl.Context
    scope: str
    image: cl.Image
    height: int
    width: int
    pixel_bytes: int
    alive: bool = True
    uses: dict[int, cl.Event] = field(default_factory=dict)

    def check(self, byte_offset: int, nbytes: int) -> None:
        """Raises unless the image is alive, and the bytes are whole rows or pixels of one row."""
        if not self.alive:
            raise UseAfterFreeError("this image of an OpenCL device was freed; allocate another one")
        self.check_pixels(byte_offset, nbytes)

    def extent(self, byte_offset: int, nbytes: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Returns the origin and the size, in pixels, of bytes that ``check`` accepted."""
        first, size = self.block(byte_offset, nbytes)
        return (*first, 0), (*size, 1)

    def release(self) -> None:
        """Free the driver's image; the last use is over."""
        self.alive = False
        self.image.release()


#: The handle of a Space.
MemoryBlock = BufferBlock | ImageBlock

#: The same for ``isinstance``, which takes a third of the time with it.
MEMORY_BLOCKS = (BufferBlock, ImageBlock)


def host_bytes(address: int, nbytes: int) -> Any:
    """Returns the ``nbytes`` bytes of this process from ``address`` on, as a buffer that owns nothing."""
    return (ctypes.c_ubyte * nbytes).from_address(address)
