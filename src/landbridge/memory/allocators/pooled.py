"""PooledAllocator: cuts blocks from larger ones that it retains, because fresh pages cost more than copies.

There are three levels. A returned block waits in a list of its exact size and alignment, from which the next such
request takes it without a lock (a finalizer may return a block at any moment, also in the middle of an allocation). A
block that comes back with work pending on it is parked until that is done; until then only a request of the queue that
does the work may have it. When no waiting block fits, the waiting blocks go back to the chunks they were cut from,
neighbours merge, and the smallest hole that fits is used; else the upstream allocator gives a new chunk. Large blocks
go back before a chunk's never used bytes are cut, as those take no memory of the system yet.

Three rules bound its growth. Small blocks have chunks of their own, so that none keeps a large chunk in use (where
there is no memory for another chunk, any hole serves). Chunks that are unused when another is needed are replaced by
that one. A new chunk is half as large as all others together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from sys import is_finalizing
from typing import NamedTuple

from landbridge.device.api import Region
from landbridge.errors import InputError, OutOfMemoryError
from landbridge.memory.allocators.adaptor import Downstream
from landbridge.memory.allocators.base import Allocator, Block, Queue, QueuedUse, Size, flat_bytes, round_up
from landbridge.memory.allocators.chunks import Chunk, Chunks
from landbridge.memory.allocators.keepers import register_keeper
from landbridge.process.locks import new_lock
from landbridge.records import record

_CHUNK = 1 << 20  # less than a huge page: bytes that small blocks never touch cost nothing
_PAGE = 4096  # alignment and size multiple of chunks, except in small memories, which have no bytes to spare
_SMALL = 1 << 16  # largest size of a small block
_MOST_GROWTH = 64 << 20  # when it exceeds what is needed


class PoolState(NamedTuple):
    """The bytes of a pool at one moment: taken from upstream, used by blocks, unused, and those of the largest unused
    range.

    Blocks that came back and that queued work still uses count as used.
    """

    reserved_bytes: int
    used_bytes: int
    free_bytes: int
    largest_hole: int


@record(frozen=True, slots=True, eq=False, kw_only=True)
class _Cut(Block):
    """A block of ``pool`` that was cut from ``chunk`` of ``chunks``, from byte ``begin`` of it on. ``key`` has the size
    and alignment of the request, in bytes.
    """

    pool: PooledAllocator
    chunks: Chunks
    chunk: Chunk
    begin: int
    key: tuple[int, int]


class PooledAllocator(Downstream):
    """Retains returned blocks for later requests. At most ``cap`` bytes (None: no limit) are taken from ``upstream`` at
    any time; ``trim()`` returns unused ones.

    Blocks are aligned to ``granule`` bytes or more, and no two share a granule: pass the kind's alignment, offset
    alignment or coherence granule, whichever is largest. The pool takes at least ``chunk`` bytes at a time from
    upstream, or what a block needs where upstream has less. All of it returns to upstream when the pool is collected,
    which cannot be before its last block is back.
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
        self._lock = new_lock()  # upstream may call back to free memory, and the callback trim()
        register_keeper(self)

    @property
    def state(self) -> PoolState:
        """Returns the bytes of the pool now; blocks that came back are merged into unused ranges first."""
        self._settle()
        with self._lock:
            self._reclaim()
            reserved, free = self.reserved_bytes, self._small.free_bytes + self._large.free_bytes
            largest = max(self._small.largest_hole, self._large.largest_hole)
            return PoolState(reserved, reserved - free, free, largest)

    @property
    def reserved_bytes(self) -> int:
        """Returns the bytes taken from upstream, in use or not."""
        return self._small.nbytes + self._large.nbytes

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """Returns a block of ``size`` bytes rounded up to the granule, from the pool when it has one; on ``queue`` it
        may be one that earlier work of that queue still uses.

        Raises OutOfMemoryError at the cap and where upstream does, InputError for a size that is not in bytes.
        """
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
            except IndexError:  # another thread, or a finalizer, took it first
                pass
        if self._parked and (parked := self._settle(key, queue)) is not None:
            return parked
        with self._lock:
            chunks = self._small if key[0] <= _SMALL else self._large
            cut = chunks.cut(*key)
            if cut is not None and cut[1] + key[0] > cut[0].fresh and self._large_wait():  # pages that were used before
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
        """Wait for the uses of returned blocks and give every chunk without used blocks to upstream; returns their
        bytes.
        """
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
        """Returns whether large blocks wait to be used again."""
        # A copy is made at once; while a list of items is, the garbage collector may run, and give blocks back here.
        return any(size > _SMALL and blocks for (size, _), blocks in self._waiting.copy().items())

    def _settle(
        self, key: tuple[int, int] | None = None, queue: Queue | None = None, *, wait: bool = False
    ) -> _Cut | None:
        """Make those parked blocks available whose uses are over, after waiting for them with ``wait``. Returns a block
        of ``key``: an available one, or one that only work on ``queue`` still uses; None where there is none.

        It asks the device, so the caller must not hold the lock. Each iteration of the loop has one parked block to
        itself.
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
        """Give the waiting blocks back to their chunks and remove their lists; the caller holds the lock."""
        for key in list(self._waiting):
            waiting = self._waiting.pop(key, [])  # a finalizer in this thread may have come in between
            while waiting:
                try:
                    block = waiting.pop()
                except IndexError:
                    break
                block.chunks.give_back(block.chunk, block.begin, block.begin + block.nbytes)

    def _join(self, chunks: Chunks, size: int, alignment: int) -> None:
        """Replace the unused chunks by a single one that ``size`` bytes fit in, so that no smaller one stays allocated
        with it.

        Does nothing where the cap or the largest legal size would be exceeded, or upstream has no such range.
        """
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
            return  # upstream has not that much in one piece: what is needed now may be less

    def _give_back_unused(self, chunks: Chunks) -> int:
        unused = chunks.unused()
        for chunk in unused:
            chunks.remove(chunk)
            self.upstream.deallocate(chunk.block)
        return sum(chunk.block.nbytes for chunk in unused)

    def _grow(self, chunks: Chunks, size: int, alignment: int) -> tuple[Chunk, int]:
        """Returns a piece of a new chunk, cut for the caller; raises OutOfMemoryError at the cap and where upstream
        does.
        """
        wanted, aligned = round_up(size, self._page), max(alignment, self._page)
        most = self._most
        if self._cap is not None:
            remaining = self._cap - self.reserved_bytes
            if wanted > remaining:
                remaining += self._give_back_unused(self._small) + self._give_back_unused(self._large)
            if wanted > remaining:
                raise OutOfMemoryError(
                    f"pool of {self.device} {self.scope}: {size} bytes requested, {self._cap - remaining} of its cap "
                    f"of {self._cap} bytes taken, largest hole {chunks.largest_hole}; raise the cap or free tensors"
                )
            most = remaining if most is None else min(remaining, most)
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

    def __del__(self, is_finalizing: Callable[[], bool] = is_finalizing) -> None:  # this module may be cleared by then
        # Blocks hold the pool, so all are back; while the interpreter exits the device may be gone already.
        if is_finalizing():
            return
        uses: dict[Chunk, list[QueuedUse]] = {}
        for block, pending in getattr(self, "_parked", ()):
            uses.setdefault(block.chunk, []).extend(pending)
        for chunks in (getattr(self, "_small", None), getattr(self, "_large", None)):
            for chunk in () if chunks is None else chunks.all():
                self.upstream.deallocate(chunk.block, uses.get(chunk, ()))
