"""Chunks: large blocks that are cut into pieces, with a map of their holes. It has no lock and no policy."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import field
from itertools import count

from landbridge.memory.allocators.base import Block, round_up
from landbridge.records import record


@record(eq=False)
class Chunk:
    """One large block, aligned to ``alignment`` bytes, and its holes: maps of start to end and of end to start.

    Nothing was ever cut from byte ``fresh`` on.
    """

    block: Block
    serial: int
    alignment: int
    fresh: int = 0
    starts: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)

    @property
    def is_unused(self) -> bool:
        """Returns whether the whole chunk is one hole."""
        return self.starts.get(0) == self.block.nbytes


class Chunks:
    """A set of chunks that requests are cut from; the smallest hole that fits is used first."""

    def __init__(self) -> None:
        self._chunks: dict[int, Chunk] = {}
        self._holes: list[tuple[int, int, int]] = []  # (size, chunk serial, start), sorted
        self._serials = count()
        #: True when an interrupt may have come in the middle of a change.
        self._torn = False

    @property
    def nbytes(self) -> int:
        """Returns the bytes of all chunks."""
        return sum(chunk.block.nbytes for chunk in self.all())

    @property
    def free_bytes(self) -> int:
        """Returns the bytes of all holes."""
        return sum(size for size, _, _ in self._holes)

    @property
    def largest_hole(self) -> int:
        """Returns the bytes of the largest hole, 0 when there is none."""
        return self._holes[-1][0] if self._holes else 0

    def all(self) -> list[Chunk]:
        """Returns all chunks, in use or not."""
        return list(self._chunks.values())

    def unused(self) -> list[Chunk]:
        """Returns the chunks that are one hole."""
        return [chunk for chunk in self.all() if chunk.is_unused]

    def add(self, block: Block, alignment: int) -> None:
        """Add ``block`` as an unused chunk."""
        self._mend()
        chunk = Chunk(block, next(self._serials), alignment)
        self._chunks[chunk.serial] = chunk
        self._add_hole(chunk, 0, block.nbytes)

    def remove(self, chunk: Chunk) -> None:
        """Remove ``chunk``, which must be unused."""
        self._mend()
        self._remove_hole(chunk, 0, chunk.block.nbytes)
        del self._chunks[chunk.serial]

    def cut(self, size: int, alignment: int) -> tuple[Chunk, int] | None:
        """Returns a chunk, and the byte in it where ``size`` aligned bytes were cut for the caller; None when none
        fits.
        """
        self._mend()
        for position in range(bisect_left(self._holes, (size, -1, -1)), len(self._holes)):
            length, serial, start = self._holes[position]
            chunk = self._chunks[serial]
            begin = round_up(start, alignment)
            if alignment > chunk.alignment or begin + size > start + length:
                continue
            self._remove_hole(chunk, start, start + length)
            self._add_hole(chunk, start, begin)
            self._add_hole(chunk, begin + size, start + length)
            return chunk, begin
        return None

    def give_back(self, chunk: Chunk, begin: int, end: int) -> None:
        """Take back a piece that was cut from ``chunk`` and merge it with the holes next to it."""
        self._mend()
        if (after := chunk.starts.get(end)) is not None:
            self._remove_hole(chunk, end, after)
            end = after
        if (before := chunk.ends.get(begin)) is not None:
            self._remove_hole(chunk, before, begin)
            begin = before
        self._add_hole(chunk, begin, end)

    def _add_hole(self, chunk: Chunk, start: int, end: int) -> None:
        if start < end:
            self._torn = True
            chunk.starts[start] = end
            chunk.ends[end] = start
            insort(self._holes, (end - start, chunk.serial, start))
            self._torn = False

    def _remove_hole(self, chunk: Chunk, start: int, end: int) -> None:
        self._torn = True
        del chunk.starts[start], chunk.ends[end]
        del self._holes[bisect_left(self._holes, (end - start, chunk.serial, start))]
        self._torn = False

    def _mend(self) -> None:
        """Rebuild what an interrupt left half done from the map of where the holes of each chunk start."""
        if self._torn:
            for chunk in self._chunks.values():
                chunk.ends.clear()
                chunk.ends.update((end, start) for start, end in chunk.starts.items())
            self._holes = sorted(
                (end - start, chunk.serial, start)
                for chunk in self._chunks.values()
                for start, end in chunk.starts.items()
            )
            self._torn = False
