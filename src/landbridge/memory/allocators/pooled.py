"""PooledAllocator: blocks cut from larger ones that are kept, because fresh pages cost more than copies.

Three levels. A returned block waits in a list of its exact size and alignment, from where the next such request takes
it without a lock (a finalizer may return a block at any moment, also in the middle of an allocation). A block that
comes back with work pending on it is parked until that is done; until then only a request of the queue that does the
work may have it. When no block fits as it is, the waiting ones go back to the chunks they were cut from, neighbours
merge, and the smallest hole that fits serves; else the upstream allocator gives a new chunk. Large ones go back
before a chunk gives what it never gave: that is no memory of the system's yet.

What keeps it from growing without end: small blocks have chunks of their own, so that none holds a large one open
(where there is no memory for another chunk, any hole serves); chunks that are unused when another is needed become that
one; and a new one is half as large as all there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from sys import is_finalizing
from typing import NamedTuple

from landbridge.device.api import Region
from landbridge.errors import InputError, OutOfMemoryError
from landbridge.locks import new_lock
from landbridge.memory.allocators.adaptor import Downstream
from landbridge.memory.allocators.base import Allocator, Block, Queue, QueuedUse, Size, flat_bytes, round_up
from landbridge.memory.allocators.chunks import Chunk, Chunks
from landbridge.memory.allocators.keepers import register_keeper
from landbridge.records import record

_CHUNK = 1 << 20  # less than a huge page: what small blocks never touch costs nothing
_PAGE = 4096  # alignment and size multiple of chunks, but of small memories, which have no bytes to spare
_SMALL = 1 << 16  # largest size of a small block
_MOST_GROWTH = 64 << 20  # more than is needed, that is


class PoolState(NamedTuple):
    """Bytes of a pool at one moment: taken from upstream, out in blocks, unused, and the largest unused run.

    Parked blocks count as used.
    """

    reserved_bytes: int
    used_bytes: int
    free_bytes: int
    largest_hole: int


@record(frozen=True, slots=True, eq=False, kw_only=True)
class _Cut(Block):
    """A block of ``pool``, where it was cut from a chunk of ``chunks``, and the size and alignment that were asked."""

    pool: PooledAllocator
    chunks: Chunks
    chunk: Chunk
    begin: int
    key: tuple[int, int]


class PooledAllocator(Downstream):
    """Keeps what is returned, up to ``cap`` bytes taken from ``upstream`` (None: no cap); ``trim()`` gives back.

    Blocks are aligned to at least ``granule`` bytes and never share one: pass the kind's alignment, offset
    alignment and coherence granule, whichever is largest. From upstream it takes at least ``chunk`` bytes, or
    what a block needs where upstream has not that much. They go back with the pool.
    """

    def __init__(self, upstream: Allocator, *, granule: int = 64, cap: int | None = None, chunk: int = _CHUNK) -> None:
        if granule < 1 or granule & (granule - 1):
            raise InputError(f"a granule of {granule} bytes is not legal; give a power of two")
        if (cap is not None and cap < 0) or chunk < 0:
            raise InputError(f"a cap of {cap} and chunks of {chunk} bytes are not legal; give at least 0, or cap=None")
        super().__init__(upstream)
        self._granule = granule
        self._cap = cap
        self._chunk = chunk
        kind = upstream.device.memory_kind(upstream.scope)
        self._most = kind.max_bytes
        self._page = _PAGE if kind.capacity is None or kind.capacity >= _CHUNK else granule
        self._waiting: dict[tuple[int, int], list[_Cut]] = {}
        self._parked: deque[tuple[_Cut, tuple[QueuedUse, ...]]] = deque()
        self._small, self._large = Chunks(), Chunks()
        self._lock = new_lock()  # upstream may call whoever makes room, and that one trim()
        register_keeper(self)

    @property
    def state(self) -> PoolState:
        """Its bytes now, after everything that came back was merged."""
        self._settle()
        with self._lock:
            self._reclaim()
            reserved, free = self.reserved_bytes, self._small.free_bytes + self._large.free_bytes
            largest = max(self._small.largest_hole, self._large.largest_hole)
            return PoolState(reserved, reserved - free, free, largest)

    @property
    def reserved_bytes(self) -> int:
        """Bytes taken from upstream, in use or not."""
        return self._small.nbytes + self._large.nbytes

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
            chunks = self._small if key[0] <= _SMALL else self._large
            cut = chunks.cut(*key)
            if cut is not None and cut[1] + key[0] > cut[0].fresh and self._large_wait():  # pages that were used first
                chunks.give_back(*cut, cut[1] + key[0])
                self._reclaim()
                cut = chunks.cut(*key)
            if cut is None:
                self._reclaim()
                self._join(chunks, *key)
                cut = chunks.cut(*key)
            if cut is None:
                try:
                    cut = self._grow(chunks, *key)
                except OutOfMemoryError:
                    chunks = self._large if chunks is self._small else self._small
                    if (cut := chunks.cut(*key)) is None:
                        raise
            chunk, begin = cut
            chunk.fresh = max(chunk.fresh, begin + key[0])
            base = chunk.block.region
            region = Region(base.space, base.byte_offset + begin)
            return _Cut(region, key[0], pool=self, chunks=chunks, chunk=chunk, begin=begin, key=key)

    def deallocate(self, block: Block, uses: Sequence[QueuedUse] = ()) -> None:
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
            return self._give_back_unused(self._small) + self._give_back_unused(self._large)

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

    def _large_wait(self) -> bool:
        """Whether large blocks wait."""
        return any(size > _SMALL and blocks for (size, _), blocks in list(self._waiting.items()))

    def _settle(
        self, key: tuple[int, int] | None = None, queue: Queue | None = None, *, wait: bool = False
    ) -> _Cut | None:
        """Keep parked blocks that are done, after waiting for them if asked to; one of ``key`` that ``queue`` may have.

        Asks the device, so it must not hold the lock; each iteration of the loop has a parked block to itself.
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

    def _reclaim(self) -> None:
        """Return the waiting blocks to their chunks and forget their sizes."""
        for key in list(self._waiting):
            waiting = self._waiting.pop(key, [])  # a finalizer in this thread may have been here meanwhile
            while waiting:
                try:
                    block = waiting.pop()
                except IndexError:
                    break
                block.chunks.give_back(block.chunk, block.begin, block.begin + block.nbytes)

    def _join(self, chunks: Chunks, size: int, alignment: int) -> None:
        """Make one chunk of those that are unused, in which ``size`` bytes fit: a smaller one would stay beside it."""
        unused = chunks.unused()
        there, aligned = sum(chunk.block.nbytes for chunk in unused), max(alignment, self._page)
        nbytes = max(there, round_up(size, self._page))
        if not unused or (len(unused) == 1 and nbytes == there):
            return
        if self._most is not None and nbytes > self._most:
            return
        if self._cap is not None and self.reserved_bytes - there + nbytes > self._cap:
            return
        self._give_back_unused(chunks)
        try:
            chunks.add(self.upstream.allocate(nbytes, aligned), aligned)
        except OutOfMemoryError:
            return  # it has not that much in one piece: what is needed now may be less

    def _give_back_unused(self, chunks: Chunks) -> int:
        unused = chunks.unused()
        for chunk in unused:
            chunks.remove(chunk)
            self.upstream.deallocate(chunk.block)
        return sum(chunk.block.nbytes for chunk in unused)

    def _grow(self, chunks: Chunks, size: int, alignment: int) -> tuple[Chunk, int]:
        """A cut from a new chunk; raises OutOfMemoryError at the cap and where upstream does."""
        wanted, aligned = round_up(size, self._page), max(alignment, self._page)
        most = self._most
        if self._cap is not None:
            capacity = self._cap - self.reserved_bytes
            if wanted > capacity:
                capacity += self._give_back_unused(self._small) + self._give_back_unused(self._large)
            if wanted > capacity:
                raise OutOfMemoryError(
                    f"pool of {self.device} {self.scope}: {size} bytes asked, {self._cap - capacity} of its cap of "
                    f"{self._cap} bytes taken, largest hole {chunks.largest_hole}; raise the cap or free tensors"
                )
            most = capacity if most is None else min(capacity, most)
        nbytes = max(self._chunk, min(round_up(chunks.nbytes // 2, self._page), _MOST_GROWTH))
        nbytes = max(wanted, nbytes if most is None else min(nbytes, most))
        try:
            block = self.upstream.allocate(nbytes, aligned)
        except OutOfMemoryError:
            if nbytes == wanted:
                raise
            block = self.upstream.allocate(wanted, aligned)
        chunks.add(block, aligned)
        cut = chunks.cut(size, alignment)
        assert cut is not None  # the chunk was made for it
        return cut

    def __del__(self, is_finalizing: Callable[[], bool] = is_finalizing) -> None:  # modules may be empty by then
        # Blocks hold the pool, so all are back; while the interpreter exits the device may be gone already.
        if is_finalizing():
            return
        uses: dict[int, list[QueuedUse]] = {}
        for block, pending in getattr(self, "_parked", ()):
            uses.setdefault(id(block.chunk), []).extend(pending)
        for chunks in (getattr(self, "_small", None), getattr(self, "_large", None)):
            for chunk in () if chunks is None else chunks.all():
                self.upstream.deallocate(chunk.block, uses.get(id(chunk), ()))
