"""PooledAllocator: blocks cut from larger ones that are kept, because fresh pages cost more than copies.

Two levels. A returned block waits in a list of its exact size, from where the next request of that size takes it
without a lock (a finalizer may return a block at any moment, also in the middle of an allocation). When that list
is empty, the waiting blocks go back to the chunks they were cut from, neighbours merge, and the smallest hole
that fits serves; else the upstream allocator gives a new chunk.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from threading import Lock

from landbridge.device.device import Device
from landbridge.device.space import Region
from landbridge.errors import InputError, OutOfMemoryError
from landbridge.memory.allocators.base import Allocator, Block, round_up

_SMALLEST_CHUNK = 2 << 20
_PAGE = 4096  # alignment and size multiple of chunks


@dataclass(eq=False)
class _Chunk:
    """One upstream block and the holes in it: start -> end, both byte offsets within the block."""

    block: Block
    serial: int
    alignment: int
    starts: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class _Cut(Block):
    """A block, where it was cut from its chunk, and the alignment it was asked with."""

    chunk: _Chunk
    begin: int
    alignment: int


class PooledAllocator:
    """Keeps what is returned, up to ``cap`` bytes taken from ``upstream`` (None: no cap); ``trim()`` gives back.

    Blocks are aligned to at least ``granule`` bytes and never share one: pass the kind's alignment, offset
    alignment and coherence granule, whichever is largest.
    """

    def __init__(self, upstream: Allocator, *, granule: int = 64, cap: int | None = None) -> None:
        self._upstream = upstream
        self._granule = granule
        self._cap = cap
        self._waiting: dict[tuple[int, int], list[_Cut]] = {}
        self._chunks: dict[int, _Chunk] = {}
        self._holes: list[tuple[int, int, int]] = []  # (size, chunk serial, start), sorted
        self._serial = 0
        self._lock = Lock()

    @property
    def device(self) -> Device:
        """Where the blocks lie."""
        return self._upstream.device

    @property
    def scope(self) -> str:
        """The memory scope of the blocks."""
        return self._upstream.scope

    @property
    def reserved_bytes(self) -> int:
        """Bytes taken from upstream, in use or not."""
        return sum(chunk.block.nbytes for chunk in list(self._chunks.values()))

    @property
    def free_bytes(self) -> int:
        """Bytes taken from upstream that no block uses."""
        with self._lock:
            self._reclaim()
            return sum(size for size, _, _ in self._holes)

    @property
    def largest_hole(self) -> int:
        """The largest block that could be served without asking upstream, in bytes."""
        with self._lock:
            self._reclaim()
            return self._holes[-1][0] if self._holes else 0

    def allocate(self, nbytes: int, alignment: int) -> Block:
        """A block of ``nbytes`` rounded up to the granule, from the pool when it has one."""
        granule = self._granule
        key = (-(-(nbytes or 1) // granule) * granule, alignment if alignment > granule else granule)
        waiting = self._waiting.get(key)
        if waiting:
            try:
                return waiting.pop()
            except IndexError:  # another thread, or a finalizer's owner, was faster
                pass
        with self._lock:
            block = self._cut(*key)
            if block is None:
                self._reclaim()
                block = self._cut(*key) or self._grow(*key)
            return block

    def deallocate(self, block: Block) -> None:
        """Keep ``block`` for the next request of its size; takes no lock."""
        if not isinstance(block, _Cut):
            raise InputError(f"{block} was not allocated by this pool; give it back to its own allocator")
        self._waiting.setdefault((block.nbytes, block.alignment), []).append(block)

    def trim(self) -> int:
        """Give every chunk that no block uses back to upstream; returns the bytes given back."""
        with self._lock:
            self._reclaim()
            unused = [c for c in self._chunks.values() if c.starts.get(0) == c.block.nbytes]
            for chunk in unused:
                self._remove_hole(chunk, 0, chunk.block.nbytes)
                del self._chunks[chunk.serial]
        for chunk in unused:
            self._upstream.deallocate(chunk.block)
        return sum(chunk.block.nbytes for chunk in unused)

    def _cut(self, size: int, alignment: int) -> _Cut | None:
        """The smallest hole that holds ``size`` aligned bytes, cut to size."""
        for position in range(bisect_left(self._holes, (size, -1, -1)), len(self._holes)):
            length, serial, start = self._holes[position]
            chunk = self._chunks[serial]
            begin = round_up(start, alignment)
            if alignment > chunk.alignment or begin + size > start + length:
                continue
            self._remove_hole(chunk, start, start + length)
            self._add_hole(chunk, start, begin)
            self._add_hole(chunk, begin + size, start + length)
            return self._block(chunk, begin, size, alignment)
        return None

    def _grow(self, size: int, alignment: int) -> _Cut:
        """A block at the start of a new chunk; raises OutOfMemoryError at the cap."""
        wanted = round_up(size, _PAGE)
        taken = self.reserved_bytes
        room = wanted if self._cap is None else self._cap - taken
        if wanted > room:
            raise OutOfMemoryError(
                f"pool of {self.device} {self.scope}: {size} bytes asked, {taken} of its cap of {self._cap} bytes "
                f"taken, largest hole {self._holes[-1][0] if self._holes else 0}; raise the cap or free tensors"
            )
        nbytes = max(wanted, _SMALLEST_CHUNK if self._cap is None else min(_SMALLEST_CHUNK, room))
        aligned = max(alignment, _PAGE)
        self._serial += 1
        chunk = _Chunk(self._upstream.allocate(nbytes, aligned), self._serial, aligned)
        self._chunks[chunk.serial] = chunk
        self._add_hole(chunk, size, chunk.block.nbytes)
        return self._block(chunk, 0, size, alignment)

    @staticmethod
    def _block(chunk: _Chunk, begin: int, size: int, alignment: int) -> _Cut:
        base = chunk.block.region
        return _Cut(Region(base.space, base.byte_offset + begin), size, chunk, begin, alignment)

    def _reclaim(self) -> None:
        """Return the waiting blocks to their chunks, merging neighbours."""
        for waiting in list(self._waiting.values()):
            while waiting:
                try:
                    block = waiting.pop()
                except IndexError:
                    break
                chunk, begin, end = block.chunk, block.begin, block.begin + block.nbytes
                if (after := chunk.starts.get(end)) is not None:
                    self._remove_hole(chunk, end, after)
                    end = after
                if (before := chunk.ends.get(begin)) is not None:
                    self._remove_hole(chunk, before, begin)
                    begin = before
                self._add_hole(chunk, begin, end)

    def _add_hole(self, chunk: _Chunk, start: int, end: int) -> None:
        if start < end:
            chunk.starts[start] = end
            chunk.ends[end] = start
            insort(self._holes, (end - start, chunk.serial, start))

    def _remove_hole(self, chunk: _Chunk, start: int, end: int) -> None:
        del chunk.starts[start], chunk.ends[end]
        del self._holes[bisect_left(self._holes, (end - start, chunk.serial, start))]
