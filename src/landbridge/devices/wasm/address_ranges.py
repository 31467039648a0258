"""Ranges of an address space that are handed out and come back."""

from __future__ import annotations

from bisect import bisect_left, insort


class AddressRanges:
    """Hands out ranges of addresses from ``start`` to ``end``; the first hole that fits is used.

    Not for several threads at a time.
    """

    def __init__(self, start: int, end: int) -> None:
        #: Holes as (begin, end), in order, none next to another.
        self._holes = [(start, end)]
        self._taken: dict[int, int] = {}
        self.taken_bytes = 0

    def take(self, nbytes: int, alignment: int) -> int | None:
        """Returns the begin of ``nbytes`` bytes at a multiple of ``alignment``, or None where no hole is left.

        No bytes are one, so that each range has an address of its own.
        """
        size = max(nbytes, 1)
        for number, (begin, end) in enumerate(self._holes):
            at = -(-begin // alignment) * alignment
            if at + size <= end:
                self._holes[number : number + 1] = [(a, b) for a, b in ((begin, at), (at + size, end)) if a < b]
                self._taken[at] = at + size
                self.taken_bytes += size
                return at
        return None

    def give_back(self, begin: int) -> None:
        """Makes the range that begins at ``begin`` a hole again; raises KeyError where none does."""
        end = self._taken.pop(begin)
        self.taken_bytes -= end - begin
        insort(self._holes, (begin, end))
        number = bisect_left(self._holes, (begin, end))
        if number + 1 < len(self._holes) and self._holes[number + 1][0] == end:
            self._holes[number : number + 2] = [(begin, self._holes[number + 1][1])]
        if number and self._holes[number - 1][1] == begin:
            self._holes[number - 1 : number + 1] = [(self._holes[number - 1][0], self._holes[number][1])]
