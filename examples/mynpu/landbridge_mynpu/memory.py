"""The memory of mynpu: one contiguous arena, which the host sees through a cache of its own.

The two are kept apart, so that a barrier which somebody forgets shows: what one side wrote, the other sees only after
``clean`` or ``invalidate``. On hardware they are one piece of memory, and these two are the cache's maintenance.
"""

from __future__ import annotations

import ctypes
import mmap
from bisect import insort
from dataclasses import dataclass
from threading import Lock

from landbridge.errors import InputError, OutOfMemoryError

_BASE_ALIGNMENT = 1 << 21  # bytes


@dataclass(frozen=True, order=True)
class Block:
    """``nbytes`` bytes of the arena from ``start`` on, an allocation's until it is freed."""

    start: int
    nbytes: int


class Arena:
    """``capacity`` bytes, given out in whole multiples of ``alignment`` bytes, the first place that fits."""

    def __init__(self, capacity: int, alignment: int) -> None:
        self.capacity, self.alignment = capacity, alignment
        self._lock = Lock()
        self._blocks: list[Block] = []
        # As aligned as anything that is asked for, so that aligned offsets are aligned addresses.
        self._device, self._host = (mmap.mmap(-1, capacity + _BASE_ALIGNMENT) for _ in range(2))
        self._device_base, self._host_base = map(_aligned, (self._device, self._host))

    def allocate(self, nbytes: int, alignment: int) -> Block:
        """A block that begins at a multiple of ``alignment``; raises OutOfMemoryError when no gap holds it."""
        step = max(alignment, self.alignment)
        if step > _BASE_ALIGNMENT:
            raise InputError(f"mynpu: an alignment of {alignment} bytes was requested; legal: up to {_BASE_ALIGNMENT}")
        size = max(nbytes + -nbytes % self.alignment, self.alignment)
        with self._lock:
            start = 0
            for block in self._blocks:
                if start + size <= block.start:
                    break
                start = block.start + block.nbytes
                start += -start % step
            if start + size > self.capacity:
                used = sum(block.nbytes for block in self._blocks)
                raise OutOfMemoryError(
                    f"mynpu: {nbytes} bytes requested, {used} of {self.capacity} used; free tensors, or ask for less"
                )
            found = Block(start, size)
            insort(self._blocks, found)
            return found

    def free(self, block: Block) -> None:
        """Give ``block`` back."""
        with self._lock:
            self._blocks.remove(block)

    @property
    def available(self) -> int:
        """Bytes that are not given out."""
        with self._lock:
            return self.capacity - sum(block.nbytes for block in self._blocks)

    def device_address(self, start: int) -> int:
        """Where the device finds byte ``start``."""
        return self._device_base + start

    def host_address(self, start: int) -> int:
        """Where the host finds byte ``start``, as its cache has it."""
        return self._host_base + start

    def clean(self, start: int, nbytes: int) -> None:
        """The device sees what the host wrote to these bytes."""
        ctypes.memmove(self._device_base + start, self._host_base + start, nbytes)

    def invalidate(self, start: int, nbytes: int) -> None:
        """The host sees what the device wrote to these bytes."""
        ctypes.memmove(self._host_base + start, self._device_base + start, nbytes)


def _aligned(memory: mmap.mmap) -> int:
    """The first address of ``memory`` that is a multiple of ``_BASE_ALIGNMENT``."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return address + -address % _BASE_ALIGNMENT
