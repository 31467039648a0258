"""Windows: by which addresses each Backing is known, so that whoever comes by another way finds the same."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right, insort
from operator import attrgetter
from weakref import ref

from landbridge.memory.accesses import changing
from landbridge.memory.backing import Backing, root_of
from landbridge.records import record

#: More than any file has.
_WHOLE = 1 << 63
_start = attrgetter("start")


class WindowKeeper:
    """Who knows a Backing by some addresses; they are known for as long as it lives."""

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
        """The Backing, and which byte of it ``address`` is; None when nobody knows it by these addresses any more."""
        backing = self.backing() if self.holder() is not None else None
        return None if backing is None else root_of(backing, self.origin + address - self.start)


class AddressWindows:
    """The Backings of one address space: addresses of this process, of a bus, or offsets in a file.

    Backings of windows that share an address become one; what remains of it when one of the holders goes is known by
    the addresses of the others alone, as those of the one may be of other memory then.
    """

    def __init__(self) -> None:
        self._windows: list[_Window] = []
        self._longest = 0
        self._prune_at = 16

    def __bool__(self) -> bool:
        return bool(self._windows)

    def find(self, start: int, stop: int) -> tuple[Backing, int] | None:
        """A Backing of some of the addresses ``start <= a < stop``, and which byte of it ``start`` is."""
        if not self._windows:
            return None
        with changing:
            for window in self._meeting(start, stop):
                if (found := window.part(start)) is not None:
                    return found
        return None

    def enter(self, start: int, stop: int, backing: Backing, origin: int, holder: object) -> tuple[Backing, int]:
        """Let ``backing`` be known by these addresses, ``start`` being its byte ``origin``, for as long as ``holder``,
        who keeps it, lives.

        The result is the one Backing of all of them, others over some of them included, and its byte at ``start``.
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
                if known is not backing:  # which others refer to, so that what is new becomes a part of it
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
        # Asked of each once more: a finalizer may have added some since.
        return [window for window in windows[first:last] if window.start < stop and window.stop > start]


#: Addresses of this process.
host_windows = AddressWindows()

#: Addresses as devices without an IOMMU use them.
bus_windows = AddressWindows()

_files: dict[tuple[int, int], AddressWindows] = {}


def file_windows(fd: int) -> AddressWindows:
    """Offsets in the file behind ``fd``; a dma-buf has an inode of its own, whichever descriptor names it."""
    facts = os.fstat(fd)
    with changing:
        for key in [key for key, windows in _files.items() if windows.find(0, _WHOLE) is None]:
            del _files[key]
        return _files.setdefault((facts.st_dev, facts.st_ino), AddressWindows())
