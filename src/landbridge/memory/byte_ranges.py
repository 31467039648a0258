"""ByteRanges: a set of bytes, as disjoint half-open ranges."""

from __future__ import annotations

Range = tuple[int, int]


class ByteRanges:
    """A mutable set of byte numbers, empty at first. Few ranges are expected, so a plain sorted list is enough."""

    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        self._ranges: list[Range] = []

    def add(self, start: int, stop: int) -> None:
        """Add ``start <= b < stop`` to the set; ranges that touch become one."""
        if self.covers(start, stop):
            return
        disjoint: list[Range] = []
        for low, high in self._ranges:
            if high < start or stop < low:
                disjoint.append((low, high))
            else:
                start, stop = min(start, low), max(stop, high)
        if start < stop:
            disjoint.append((start, stop))
        self._ranges = sorted(disjoint)

    def remove(self, start: int, stop: int) -> None:
        """Remove ``start <= b < stop`` from the set."""
        if start >= stop:
            return
        pieces = [piece for low, high in self._ranges for piece in ((low, min(high, start)), (max(low, stop), high))]
        self._ranges = [(low, high) for low, high in pieces if low < high]

    def covers(self, start: int, stop: int) -> bool:
        """Returns whether one range of the set has all of ``start <= b < stop``."""
        for low, high in self._ranges:  # noqa: SIM110  each run asks, and a generator takes twice the time
            if low <= start and stop <= high:
                return True
        return False

    def within(self, start: int, stop: int) -> list[Range]:
        """Returns the parts of ``start <= b < stop`` that are in the set, in order."""
        cut = ((max(low, start), min(high, stop)) for low, high in self._ranges)
        return [(low, high) for low, high in cut if low < high]

    def outside(self, start: int, stop: int) -> list[Range]:
        """Returns the parts of ``start <= b < stop`` that are not in the set, in order."""
        gaps = []
        for low, high in self.within(start, stop):
            gaps.append((start, low))
            start = high
        gaps.append((start, stop))
        return [(low, high) for low, high in gaps if low < high]

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def shifted(self, by: int) -> ByteRanges:
        """Returns a new set with ``by`` added to every byte number."""
        moved = ByteRanges()
        moved._ranges = [(low + by, high + by) for low, high in self._ranges]
        return moved
