"""Windows: the addresses by which each Backing is known, so that every user of the same memory finds the same one."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right, insort
from operator import attrgetter
from weakref import ref

from landbridge.memory.accesses import changing
from landbridge.memory.backing import Backing, root_of
from landbridge.records import record

#: More than the size of any file.
_WHOLE = 1 << 63
_start = attrgetter("start")


class WindowKeeper:
    """An object that knows a Backing by some addresses, which are valid for as long as it lives."""

    __slots__ = ("__weakref__",)


@record(frozen=True, slots=True, eq=False)
class _Window:
    """Addresses ``start <= a < stop``, of which ``start`` is byte ``origin`` of ``backing``, while ``holder`` lives."""

    start: int
    stop: int
    origin: int
    backing: ref[Backing]
    holder: ref[object]

    def part(self, address: int) -> tuple[Backing, int] | None:
        """Returns the Backing, and the byte of it at ``address``; None when nobody knows it by these addresses any
        more, or it went with its device.
        """
        backing = self.backing() if self.holder() is not None else None
        found = None if backing is None else root_of(backing, self.origin + address - self.start)
        return None if found is None or found[0].is_gone else found


class AddressWindows:
    """The Backings of one address space: addresses of this process, of a bus, or offsets in a file.

    Backings whose windows share an address are merged. When one of the holders dies, the merged Backing keeps only the
    addresses of the others, as those of the dead one may be of other memory then. When a device is lost, so may those
    of all its memory.
    """

    def __init__(self) -> None:
        self._windows: list[_Window] = []
        self._longest = 0
        self._prune_at = 16

    def __bool__(self) -> bool:
        return bool(self._windows)

    def find(self, start: int, stop: int) -> tuple[Backing, int] | None:
        """Returns a Backing at some of the addresses ``start <= a < stop``, and the byte of it that ``start`` is."""
        if not self._windows:
            return None
        with changing:
            for window in self._meeting(start, stop):
                if (found := window.part(start)) is not None:
                    return found
        return None

    def enter(self, start: int, stop: int, backing: Backing, origin: int, holder: object) -> tuple[Backing, int]:
        """Register ``backing`` under these addresses, where ``start`` is its byte ``origin``; returns the merged
        Backing.

        The addresses are valid for as long as ``holder``, who keeps the Backing, lives. The result is the one Backing
        of all that overlap these addresses, with its byte at ``start``.
        """
        if start >= stop:
            return backing, origin
        with changing:
            backing, origin = root_of(backing, origin)
            is_new = True
            for window in self._meeting(start, stop):
                if (found := window.part(start)) is None:
                    continue
                known, known_origin = found
                if known is not backing:  # others refer to it, so the new one becomes a part of it
                    known.absorb(backing, known_origin - origin)
                    backing, origin = found
                is_new &= (window.start, window.stop) != (start, stop) or window.holder() is not holder
            if is_new:
                self._add(_Window(start, stop, origin, ref(backing), ref(holder)))
        return backing, origin

    def _add(self, window: _Window) -> None:
        insort(self._windows, window, key=_start)
        self._longest = max(self._longest, window.stop - window.start)
        if len(self._windows) > self._prune_at:
            self._windows = [known for known in self._windows if known.part(0) is not None]
            self._longest = max((known.stop - known.start for known in self._windows), default=0)
            self._prune_at = 2 * len(self._windows) + 16

    def _meeting(self, start: int, stop: int) -> list[_Window]:
        windows = self._windows
        first = bisect_right(windows, start - self._longest, key=_start)
        last = bisect_left(windows, stop, key=_start)
        # Each is checked once more: a finalizer may have added some since.
        return [window for window in windows[first:last] if window.start < stop and window.stop > start]


#: Addresses of this process.
host_windows = AddressWindows()

#: Addresses that devices without an IOMMU use.
bus_windows = AddressWindows()

_files: dict[tuple[int, int], AddressWindows] = {}


def file_windows(fd: int) -> AddressWindows:
    """Returns the windows of offsets in the file behind ``fd``; a dma-buf has one inode, whichever descriptor
    names it.
    """
    facts = os.fstat(fd)
    with changing:
        for key in [key for key, windows in _files.items() if windows.find(0, _WHOLE) is None]:
            del _files[key]
        return _files.setdefault((facts.st_dev, facts.st_ino), AddressWindows())
