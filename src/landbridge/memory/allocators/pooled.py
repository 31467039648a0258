"""PooledAllocator: blocks cut from larger ones that are kept, because fresh pages cost more than copies.

Three levels. A returned block waits in a list of its exact size and alignment, from where the next such request takes
it without a lock (a finalizer may return a block at any moment, also in the middle of an allocation). A block that
comes back with work pending on it is parked until that is done; until then only a request of the queue that does the
work may have it. When no block fits as it is, the waiting ones go back to the chunks they were cut from, neighbours
merge, and the smallest hole that fits serves; else the upstream allocator gives a new chunk.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import RLock

from landbridge.device.device import Device
from landbridge.device.space import Region
from landbridge.errors import InputError, OutOfMemoryError
from landbridge.memory.allocators.base import Allocator, Block, Queue, Size, Use, flat_bytes, round_up
from landbridge.memory.allocators.keepers import register_keeper

_CHUNK = 1 << 20  # less than a huge page: what small blocks never touch costs nothing
_PAGE = 4096  # alignment and size multiple of chunks


@dataclass(frozen=True, slots=True)
class PoolState:
    """Bytes of a pool at one moment: taken from upstream, out in blocks, unused, and the largest unused run.

    Parked blocks count as used.
    """

    reserved_bytes: int
    used_bytes: int
    free_bytes: int
    largest_hole: int

    @property
    def fragmentation(self) -> float:
        """The part of the unused bytes that the largest block could not have: 0 when they are one hole."""
        return 1 - self.largest_hole / self.free_bytes if self.free_bytes else 0.0


@dataclass(eq=False)
class _Chunk:
    """One upstream block and the holes in it: start -> end, both byte offsets within the block."""

    block: Block
    serial: int
    alignment: int
    starts: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Cut(Block):
    """A block of ``pool``, where it was cut from its chunk, and the size and alignment it was asked with."""

    pool: PooledAllocator
    chunk: _Chunk
    begin: int
    key: tuple[int, int]


class PooledAllocator:
    """Keeps what is returned, up to ``cap`` bytes taken from ``upstream`` (None: no cap); ``trim()`` gives back.

    Blocks are aligned to at least ``granule`` bytes and never share one: pass the kind's alignment, offset
    alignment and coherence granule, whichever is largest. From upstream it takes at least ``chunk`` bytes, or
    what a block needs where upstream has not that much.
    """

    def __init__(self, upstream: Allocator, *, granule: int = 64, cap: int | None = None, chunk: int = _CHUNK) -> None:
        if granule < 1 or granule & (granule - 1):
            raise InputError(f"a granule of {granule} bytes is not legal; give a power of two")
        if (cap is not None and cap < 0) or chunk < 0:
            raise InputError(f"a cap of {cap} and chunks of {chunk} bytes are not legal; give at least 0, or cap=None")
        self._upstream = upstream
        self._granule = granule
        self._cap = cap
        self._chunk = chunk
        self._waiting: dict[tuple[int, int], list[_Cut]] = {}
        self._parked: deque[tuple[_Cut, tuple[Use, ...]]] = deque()
        self._chunks: dict[int, _Chunk] = {}
        self._holes: list[tuple[int, int, int]] = []  # (size, chunk serial, start), sorted
        self._serial = 0
        self._lock = RLock()  # upstream may call whoever makes room, and that one trim()
        register_keeper(self)

    @property
    def device(self) -> Device:
        """Where the blocks lie."""
        return self._upstream.device

    @property
    def scope(self) -> str:
        """The memory scope of the blocks."""
        return self._upstream.scope

    @property
    def state(self) -> PoolState:
        """Its bytes now, after everything that came back was merged."""
        self._settle()
        with self._lock:
            self._reclaim()
            reserved = sum(chunk.block.nbytes for chunk in self._chunks.values())
            free = sum(size for size, _, _ in self._holes)
            return PoolState(reserved, reserved - free, free, self._holes[-1][0] if self._holes else 0)

    @property
    def reserved_bytes(self) -> int:
        """Bytes taken from upstream, in use or not."""
        return sum(chunk.block.nbytes for chunk in list(self._chunks.values()))

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """A block of ``size`` rounded up to the granule, from the pool when it has one."""
        granule = self._granule
        try:
            key = ((size or 1) + granule - 1 & -granule, alignment if alignment > granule else granule)  # type: ignore[operator]
        except TypeError:
            flat_bytes(size, self)
            raise
        waiting = self._waiting.get(key)
        if waiting:
            try:
                return waiting.pop()
            except IndexError:  # another thread, or a finalizer's owner, was faster
                pass
        if self._parked and (parked := self._settle(key, queue)) is not None:
            return parked
        with self._lock:
            block = self._cut(*key)
            if block is None:
                self._reclaim()
                block = self._cut(*key) or self._grow(*key)
            return block

    def deallocate(self, block: Block, uses: Sequence[Use] = ()) -> None:
        """Keep ``block`` for the next request of its size, once ``uses`` are done; takes no lock and never waits."""
        if not isinstance(block, _Cut) or block.pool is not self:
            raise InputError(f"{block} was not allocated by this pool; give it back to its own allocator")
        if uses or block.uses:
            self._parked.append((replace(block, uses=()), (*block.uses, *uses)))
            return
        self._keep(block)

    def trim(self) -> int:
        """Wait for what is parked and give every chunk that no block uses to upstream; the bytes given back."""
        self._settle(wait=True)
        with self._lock:
            self._reclaim()
            unused = [c for c in self._chunks.values() if c.starts.get(0) == c.block.nbytes]
            for chunk in unused:
                self._remove_hole(chunk, 0, chunk.block.nbytes)
                del self._chunks[chunk.serial]
        for chunk in unused:
            self._upstream.deallocate(chunk.block)
        return sum(chunk.block.nbytes for chunk in unused)

    def _keep(self, block: _Cut) -> None:
        waiting = self._waiting.get(block.key)
        if waiting is None:
            waiting = self._waiting.setdefault(block.key, [])
        waiting.append(block)
        if self._waiting.get(block.key) is not waiting:  # it was emptied and dropped in between
            try:
                waiting.remove(block)
            except ValueError:
                return
            self._keep(block)

    def _settle(
        self, key: tuple[int, int] | None = None, queue: Queue | None = None, *, wait: bool = False
    ) -> _Cut | None:
        """Keep parked blocks that are done, after waiting for them if asked to; one of ``key`` that ``queue`` may have.

        Asks the device, so it must not hold the lock; each turn of the loop has a parked block to itself.
        """
        found = None
        for _ in range(len(self._parked)):
            try:
                block, uses = self._parked.popleft()
            except IndexError:
                break
            pending = tuple(use for use in uses if not use.is_over(wait=wait))
            if not pending:
                self._keep(block)
            elif found is None and queue is not None and block.key == key and all(u.queue == queue for u in pending):
                found = replace(block, uses=pending)
            else:
                self._parked.append((block, pending))
        if found is None and key is not None and (waiting := self._waiting.get(key)):
            try:
                return waiting.pop()
            except IndexError:
                return None
        return found

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
        nbytes = max(wanted, self._chunk if self._cap is None else min(self._chunk, room))
        aligned = max(alignment, _PAGE)
        try:
            taken_block = self._upstream.allocate(nbytes, aligned)
        except OutOfMemoryError:
            if nbytes == wanted:
                raise
            taken_block = self._upstream.allocate(wanted, aligned)
        chunk = _Chunk(taken_block, self._serial, aligned)
        self._serial += 1
        self._chunks[chunk.serial] = chunk
        self._add_hole(chunk, size, chunk.block.nbytes)
        return self._block(chunk, 0, size, alignment)

    def _block(self, chunk: _Chunk, begin: int, size: int, alignment: int) -> _Cut:
        base = chunk.block.region
        region = Region(base.space, base.byte_offset + begin)
        return _Cut(region, size, pool=self, chunk=chunk, begin=begin, key=(size, alignment))

    def _reclaim(self) -> None:
        """Return the waiting blocks to their chunks, merging neighbours, and forget their sizes."""
        for key in list(self._waiting):
            waiting = self._waiting.pop(key)
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
