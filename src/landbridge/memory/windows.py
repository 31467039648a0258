"""Windows: by which addresses each Backing is known, so that whoever comes by another way finds the same."""

from __future__ import annotations

import os
from bisect import bisect_left, insort
from dataclasses import dataclass, field
from weakref import ref

from landbridge.memory.accesses import changing
from landbridge.memory.backing import Backing, root_of

#: More than any file has.
_WHOLE = 1 << 63


@dataclass(frozen=True, slots=True, order=True)
class _Window:
    """Addresses ``start <= a < stop``, of which ``start`` is byte ``origin`` of ``backing``."""

    start: int
    stop: int = field(compare=False)
    origin: int = field(compare=False)
    backing: ref[Backing] = field(compare=False)


class Windows:
    """The Backings of one address space: addresses of this process, of a bus, or offsets in a file.

    No two windows share an address: Backings that turn out to do so become one.
    """

    def __init__(self) -> None:
        self._windows: list[_Window] = []
        self._prune_at = 16

    def __bool__(self) -> bool:
        return bool(self._windows)

    def find(self, start: int, stop: int) -> tuple[Backing, int] | None:
        """A Backing of some of the addresses ``start <= a < stop``, and which byte of it ``start`` is."""
        if not self._windows:
            return None
        with changing:
            for window in self._meeting(start, stop):
                if (backing := window.backing()) is not None:
                    return root_of(backing, window.origin + start - window.start)
        return None

    def enter(self, start: int, stop: int, backing: Backing, origin: int) -> tuple[Backing, int]:
        """Let ``backing`` be known by these addresses, ``start`` being its byte ``origin``.

        The result is the one Backing of all of them, others over some of them included, and its byte at ``start``.
        """
        if start >= stop:
            return backing, origin
        with changing:
            backing, origin = root_of(backing, origin)
            low, high = start, stop
            for window in self._meeting(start, stop):
                self._windows.remove(window)
                if (known := window.backing()) is None:
                    continue
                known, known_origin = root_of(known, window.origin)
                low, high = min(low, window.start), max(high, window.stop)
                if known is not backing:
                    shift = origin - start + window.start - known_origin
                    backing.absorb(known, shift)
            insort(self._windows, _Window(low, high, origin + low - start, ref(backing)))
            if len(self._windows) > self._prune_at:
                self._windows = [window for window in self._windows if window.backing() is not None]
                self._prune_at = 2 * len(self._windows) + 16
        return backing, origin

    def _meeting(self, start: int, stop: int) -> list[_Window]:
        windows = self._windows
        last = bisect_left(windows, stop, key=lambda window: window.start)
        first = last
        while first and windows[first - 1].stop > start:  # windows are apart: their ends are in order, too
            first -= 1
        return windows[first:last]


#: Addresses of this process.
host_windows = Windows()

#: Addresses as devices without an IOMMU use them.
bus_windows = Windows()

_files: dict[tuple[int, int], Windows] = {}


def file_windows(fd: int) -> Windows:
    """Offsets in the file behind ``fd``; a dma-buf has an inode of its own, whichever descriptor names it."""
    facts = os.fstat(fd)
    with changing:
        for key in [key for key, windows in _files.items() if windows.find(0, _WHOLE) is None]:
            del _files[key]
        return _files.setdefault((facts.st_dev, facts.st_ino), Windows())
