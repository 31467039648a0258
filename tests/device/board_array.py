"""Arrays as a board's allocator gives them, with the attributes and methods of pynq's, over memory behind a cache.

The array is what the host's cache holds; ``Dram`` is what devices of the board read and write.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Dram:
    """Memory of a board from bus address ``begin`` on; ``calls`` are the barriers: their name, and which bytes."""

    def __init__(self, begin: int = 0x1000_0000, nbytes: int = 1 << 12) -> None:
        self.begin = begin
        self.content = np.frombuffer(bytearray(nbytes), np.uint8)
        self.calls: list[tuple[str, int, int]] = []
        self._top = 0

    def allocate(self, shape: Any, dtype: Any, *, coherent: bool = False, kind: type[BoardArray]) -> BoardArray:
        """As ``pynq.allocate``: the array lies in memory that is not numpy's own."""
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        start, self._top = self._top, self._top + -(-nbytes // 64) * 64
        cache: Any = self.content[start : start + nbytes] if coherent else bytearray(nbytes)
        made = kind(shape, dtype, buffer=cache)
        made.dram, made.coherent, made.address = self, coherent, self.begin + start
        return made

    def seen(self, array: BoardArray) -> Any:
        """What devices see of ``array``, to read and to write."""
        start = array.address - self.begin
        return self.content[start : start + array.nbytes].view(array.dtype).reshape(array.shape)

    def sync(self, name: str, array: BoardArray) -> None:
        """A barrier for all of ``array``."""
        self.calls.append((name, array.address - self.begin, array.nbytes))
        if array.coherent:
            return
        if name in ("flush", "sync_to_device"):
            self.seen(array)[...] = np.asarray(array)
        else:
            np.asarray(array)[...] = self.seen(array)


class BoardArray(np.ndarray):  # type: ignore[type-arg]
    """What all of them have; views, and what numpy computes of one, get its attributes, too."""

    dram: Any = None
    coherent: bool | None = None
    address: int = 0

    def __array_finalize__(self, other: Any) -> None:
        if isinstance(other, BoardArray) and other.dram is not None:
            self.dram, self.coherent = other.dram, other.coherent
            self.address = other.address + self.ctypes.data - other.ctypes.data


class PynqArray(BoardArray):
    """Of today's releases."""

    @property
    def device_address(self) -> int:
        return self.address

    @property
    def physical_address(self) -> int:
        return self.address

    @property
    def cacheable(self) -> bool:
        return not self.coherent

    def flush(self) -> None:
        self.dram.sync("flush", self)

    def invalidate(self) -> None:
        self.dram.sync("invalidate", self)


class SyncedArray(BoardArray):
    """Whose methods are named after who will look."""

    @property
    def physical_address(self) -> int:
        return self.address

    def sync_to_device(self) -> None:
        self.dram.sync("sync_to_device", self)

    def sync_from_device(self) -> None:
        self.dram.sync("sync_from_device", self)
