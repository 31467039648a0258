"""Workspace: scratch memory for the length of a call, from one stack for each thread and stream."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import field
from sys import is_finalizing

from landbridge.device.api import Device, Region, Stream
from landbridge.device.granted import granted
from landbridge.device.protocols import WorkspaceMemory
from landbridge.device.stream import current_stream
from landbridge.errors import InputError
from landbridge.memory.allocators.adaptor import Downstream
from landbridge.memory.allocators.base import Allocator, Block, Queue, QueuedUse, Size, flat_bytes, round_up, wait_for
from landbridge.memory.allocators.default import default_allocator
from landbridge.memory.allocators.keepers import register_keeper
from landbridge.process.locks import new_lock
from landbridge.records import record

_CHUNK = 1 << 20
_ALIGNMENT = 4096


@record(eq=False)
class _Chunk:
    """A block of upstream and the pieces on it, bottom first; pieces that come back out of order wait in ``freed``.

    ``uses`` is work that may still be pending on pieces that were there.
    """

    block: Block
    stack: list[Block] = field(default_factory=list)
    freed: set[Block] = field(default_factory=set)
    top: int = 0
    uses: list[QueuedUse] = field(default_factory=list)


class StackAllocator(Downstream):
    """A stack of blocks, given back in about the reverse order, on chunks of ``upstream`` that are retained.

    It serves one queue, which orders what is pending on a block before the next use of its bytes. Those are reused once
    all blocks above are back. When the stack is empty, all chunks but the largest go back to upstream; with the
    allocator, all do.
    """

    def __init__(self, upstream: Allocator) -> None:
        super().__init__(upstream)
        self._chunks: list[_Chunk] = []
        self._lock = new_lock()  # another thread that runs out of memory calls trim
        register_keeper(self)

    @property
    def reserved_bytes(self) -> int:
        """Returns the bytes taken from upstream."""
        return sum(chunk.block.nbytes for chunk in self._chunks)

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """Returns a block of ``size`` on the top of the stack; raises OutOfMemoryError."""
        nbytes = flat_bytes(size, self)
        with self._lock:
            begin = round_up(self._chunks[-1].top, alignment) if self._chunks else 0
            if not self._chunks or alignment > _ALIGNMENT or begin + nbytes > self._chunks[-1].block.nbytes:
                taken = self.upstream.allocate(max(nbytes, _CHUNK), max(alignment, _ALIGNMENT))
                self._chunks.append(_Chunk(taken))
                begin = 0
            chunk = self._chunks[-1]
            base = chunk.block.region
            block = Block(Region(base.space, base.byte_offset + begin), nbytes, tuple(chunk.uses))
            chunk.stack.append(block)
            chunk.top = begin + nbytes
            return block

    def deallocate(self, block: Block, uses: Sequence[QueuedUse] = ()) -> None:
        """Take ``block`` back; raises InputError for one that is not of this stack."""
        with self._lock:
            for chunk in reversed(self._chunks):
                if block in chunk.stack and block not in chunk.freed:
                    break
            else:
                raise InputError(f"{block} is not on this stack; give it back once, to the workspace it came from")
            chunk.uses = [use for use in (*chunk.uses, *uses) if not use.is_over()]
            chunk.freed.add(block)
            while chunk.stack and chunk.stack[-1] in chunk.freed:
                chunk.freed.discard(chunk.stack.pop())
            base = chunk.block.region.byte_offset
            chunk.top = chunk.stack[-1].region.byte_offset - base + chunk.stack[-1].nbytes if chunk.stack else 0
            if not any(chunk.stack for chunk in self._chunks):
                self._keep(1)

    def trim(self) -> int:
        """Give the chunks without blocks back to upstream; returns their bytes."""
        with self._lock:
            before = self.reserved_bytes
            self._keep(0)
            return before - self.reserved_bytes

    def _keep(self, unused: int) -> None:
        """Give back all chunks without blocks except the ``unused`` largest."""
        empty = sorted((c for c in self._chunks if not c.stack), key=lambda chunk: -chunk.block.nbytes)
        for chunk in empty[unused:]:
            self._chunks.remove(chunk)
            self.upstream.deallocate(chunk.block, chunk.uses)

    def __del__(self, is_finalizing: Callable[[], bool] = is_finalizing) -> None:  # this module may be cleared by then
        # Whoever made a block still holds the stack through its thread, so whatever is left when that ends is unused.
        # While the interpreter exits the device may be gone already, and the system takes the memory back.
        if is_finalizing():
            return
        for chunk in getattr(self, "_chunks", ()):
            self.upstream.deallocate(chunk.block, chunk.uses)


class _DeviceWorkspace:
    """An allocator over the workspace of a device that provides one."""

    scope = "global"

    def __init__(self, device: Device, owned: WorkspaceMemory, stream: Stream | None) -> None:
        self.device = device
        self._owned = owned
        self._stream = stream

    def allocate(self, size: Size, alignment: int, queue: Queue | None = None) -> Block:
        """Returns a block of the device's workspace, with the device's alignment."""
        nbytes = flat_bytes(size, self)
        with self.device.state.submitting(f"a workspace of {nbytes} bytes", "alloc_workspace"):
            space = self._owned.alloc_workspace(self.device.index, nbytes, self._stream)
        return Block(Region(granted(space, self.device, "alloc_workspace")), nbytes)

    def deallocate(self, block: Block, uses: Sequence[QueuedUse] = ()) -> None:
        """Give ``block`` back after ``uses``, unless it was lost with its device."""
        wait_for(uses)
        if not self.device.is_lost:
            with self.device.state.watching(method="free_workspace"):
                self._owned.free_workspace(block.region.space)


def owned_workspace(device: Device) -> Allocator | None:
    """Returns an allocator of scratch for any queue, over the workspace of ``device``; None where it provides none."""
    ability = device.capability(WorkspaceMemory)
    return None if ability is None else _DeviceWorkspace(device, ability, None)


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.stacks: dict[tuple[Device, Stream | None], Allocator] = {}


_per_thread = _PerThread()


def workspace(device: Device, stream: Stream | None = None) -> Allocator:
    """Returns this thread's workspace for work queued on ``stream`` of ``device`` (None: the thread's current stream).

    Give each block back after its last queued use, in about the reverse order.
    """
    stream = current_stream(device) if stream is None else stream
    found = _per_thread.stacks.get((device, stream))
    if found is None:
        ability = device.capability(WorkspaceMemory)
        created: Allocator = StackAllocator(default_allocator(device))
        if ability is not None:
            created = _DeviceWorkspace(device, ability, stream)
        found = _per_thread.stacks[device, stream] = created
    return found
