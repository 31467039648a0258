"""Spaces: the memory of a sanitized device, with redzones around each block and a quarantine of freed blocks."""

from __future__ import annotations

import mmap
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from landbridge.device.api import Device, Region, Space
from landbridge.device.checks import check_inside, check_request
from landbridge.device.state import DeviceState
from landbridge.errors import DeviceError, InputError, OutOfMemoryError, SanitizerError
from landbridge.memory_kind import MemoryKind
from landbridge.process.locks import new_lock
from landbridge.sanitizer.block import SpaceHandle, TrackedBlock
from landbridge.sanitizer.findings import call_site, fail, tell
from landbridge.sanitizer.inner_bytes import InnerBytes
from landbridge.sanitizer.order import Order
from landbridge.sanitizer.shadow import POISON

#: The bytes that fill redzones, and memory that was freed.
REDZONE, FREED = 0xFB, 0xDD

#: A TrackedBlock that was freed, how to give it back, and whether it was filled for writes to be seen.
_Held = tuple[TrackedBlock, Callable[[Space], None], bool]
_BACK = 256
#: Scopes that have less get no redzones, and nothing of them is held back.
_SMALL = 1 << 20
#: Bytes, and spaces, that are held back after they were freed.
_MOST_BYTES, _MOST_SPACES = 1 << 26, 64


class Spaces:
    """The live blocks of one API, and its quarantine."""

    def __init__(self, order: Order, host: Device) -> None:
        self._order = order
        self._host = host
        self._lock = new_lock()
        self._watched: dict[TrackedBlock, weakref.finalize[[TrackedBlock, DeviceState], SpaceHandle]] = {}
        self._freed_by_owner: deque[tuple[TrackedBlock, DeviceState]] = deque()
        self._quarantine: deque[_Held] = deque()

    def allocate(
        self, inner: Device, nbytes: int, alignment: int, scope: str, alloc: Callable[[int, int], Space]
    ) -> TrackedBlock:
        """Makes a TrackedBlock by ``alloc(bytes, alignment)``, poisons it and fills its redzones.

        Where memory is too small for redzones, even after the quarantine is freed, it has none.
        """
        check_request(nbytes, alignment, str(inner))
        kind = inner.memory_kinds.get(scope or "global")
        front, back = (0, 0) if kind is None else _redzones(kind, nbytes, alignment)
        block = None
        if back:
            with suppress(OutOfMemoryError, InputError):
                block = TrackedBlock(alloc(front + nbytes + back, alignment), nbytes, call_site(), front, back)
        if block is None:
            try:
                block = TrackedBlock(alloc(nbytes, alignment), nbytes, call_site())
            except OutOfMemoryError:
                self.release_all(inner.index)
                block = TrackedBlock(alloc(nbytes, alignment), nbytes, call_site())
        block.has_shadow = (
            kind is not None and kind.host_access == "read_write" and not kind.coherent and kind.ndim == 1
        )
        bytes_of = InnerBytes(inner, self._host)
        bytes_of.fill(block.region(), nbytes, POISON)
        for offset, size in block.redzones():
            if not bytes_of.fill(block.region(offset), size, REDZONE):
                block.checked = False
        return block

    def watch(self, handle: SpaceHandle, block: TrackedBlock, life: DeviceState) -> None:
        """Makes ``check_all`` report a leak when ``handle`` is collected, ``block`` is not freed and ``life`` did not
        end.
        """
        finalizer = weakref.finalize(handle, self._note_freed, block, life)
        finalizer.atexit = False
        self._watched[block] = finalizer

    def unwatch(self, block: TrackedBlock) -> None:
        """Notes that ``block`` was freed."""
        finalizer = self._watched.pop(block, None)
        if finalizer is not None:
            finalizer.detach()

    def forget(self, index: int) -> None:
        """Forgets all memory of instance ``index``."""
        for block in self._watched.copy():
            if block.inner.device.index == index:
                self.unwatch(block)
        self._held_of(index)

    def free(self, block: TrackedBlock, free: Callable[[Space], None], *, keep: bool = True) -> None:
        """Checks ``block``, and frees it by ``free``, now or after its time in quarantine."""
        pending = self._order.unfinished(block, 0, block.nbytes, True)
        freed_at = call_site()
        done_by = " or ".join(dict.fromkeys(known.subject for known in pending)) or "somebody"
        self.check_redzones(block, f"{done_by}, before the free at {freed_at},")
        block.died = freed_at
        self.unwatch(block)
        kind = block.inner.device.memory_kinds.get(block.inner.scope)
        if keep and kind is not None and kind.ndim == 1 and not _is_small(kind) and block.total <= _MOST_BYTES // 4:
            filled = not pending and InnerBytes(block.inner.device, self._host).fill(
                block.region(), block.nbytes, FREED
            )
            with self._lock:
                self._quarantine.append((block, free, filled))
                over = []
                while len(self._quarantine) > _MOST_SPACES or self._held() > _MOST_BYTES:
                    over.append(self._quarantine.popleft())
            for entry in over:
                self._release(*entry)
        else:
            free(block.inner)
        if pending:
            first = pending[0]
            fail(
                "freed in use",
                f"{block} is freed at {block.died} while {first.subject} may still use it from byte {first.start} on",
            )

    def held_back(self, index: int) -> int:
        """Returns the bytes of instance ``index`` that are in quarantine."""
        with self._lock:
            quarantined = sum(block.total for block, _, _ in self._quarantine if block.inner.device.index == index)
        watched = self._watched.copy()  # copied in one step, as finalizers remove entries
        around = sum(block.front + block.back for block in watched if block.inner.device.index == index)
        return quarantined + around

    def release_all(self, index: int) -> None:
        """Frees the quarantine of instance ``index``."""
        for entry in self._held_of(index):
            self._release(*entry)

    def check_inside(self, block: TrackedBlock, region: Region, nbytes: int, subject: str) -> None:
        """Raises InputError, as devices do, for bytes outside of ``block``."""
        check_inside(region.byte_offset, nbytes, block.nbytes, f"{block.inner.device}: {subject}")

    def note_copy(
        self, source: TrackedBlock | None, start: int, target: TrackedBlock | None, to: int, nbytes: int, subject: str
    ) -> None:
        """Marks bytes that ``subject`` copies uninitialized as such; reports a finding where they leave the tracked
        memory.
        """
        holes = [] if source is None else source.written.outside(start, start + nbytes)
        if target is not None:
            target.written.add(to, to + nbytes)
            for low, high in holes:
                target.written.remove(to + low - start, to + high - start)
        elif holes:
            fail(
                "uninitialised",
                f"{subject} reads bytes {holes[0][0]} to {holes[0][1]} of {source}, which nothing has written since",
            )

    def check_redzones(self, block: TrackedBlock, subject: str) -> None:
        """Reports a finding where a redzone of ``block`` was written, by ``subject`` as far as is known."""
        if not block.checked or block.death is not None:
            return
        bytes_of = InnerBytes(block.inner.device, self._host)
        for offset, size in block.redzones():
            found = bytes_of.read(block.region(offset), size)
            wrong = _first_other(found, REDZONE)
            if wrong is not None:
                bytes_of.fill(block.region(offset), size, REDZONE)
                fail("redzone", f"{subject} wrote byte {offset + wrong} of {block}, which is outside of it")

    def check_all(self) -> None:
        """Checks every redzone, freed blocks and leaks; records findings."""
        for block in self._watched.copy():
            with suppress(SanitizerError, DeviceError):  # the finding is recorded in any case
                self.check_redzones(block, "somebody")
        for block, _, filled in self._quarantine.copy():
            with suppress(DeviceError):  # the device is closed or lost
                self._check_freed(block, filled)
        while self._freed_by_owner:
            block, life = self._freed_by_owner.popleft()
            if block.died is None and life.failure is None:
                tell("leak", f"{block} was let go and never freed")

    def _held_of(self, index: int) -> list[_Held]:
        """Removes the quarantine of instance ``index`` and returns it."""
        with self._lock:
            taken = [entry for entry in self._quarantine if entry[0].inner.device.index == index]
            self._quarantine = deque(entry for entry in self._quarantine if entry[0].inner.device.index != index)
        return taken

    def _held(self) -> int:
        return sum(block.total for block, _, _ in self._quarantine)

    def _release(self, block: TrackedBlock, free: Callable[[Space], None], filled: bool) -> None:
        self._check_freed(block, filled)
        free(block.inner)

    def _check_freed(self, block: TrackedBlock, filled: bool) -> None:
        if not filled:
            return
        bytes_of = InnerBytes(block.inner.device, self._host)
        wrong = _first_other(bytes_of.read(block.region(), block.nbytes), FREED)
        if wrong is not None:
            bytes_of.fill(block.region(), block.nbytes, FREED)  # so that it is reported once
            tell("use after free", f"byte {wrong} of {block} was written after it was freed at {block.died}")

    def _note_freed(self, block: TrackedBlock, life: DeviceState) -> None:
        # The collector may call this before the __del__ of an owner that will free it: check_all checks again.
        self._watched.pop(block, None)
        self._freed_by_owner.append((block, life))


def _redzones(kind: MemoryKind, nbytes: int, alignment: int) -> tuple[int, int]:
    """Returns the bytes before and after an allocation."""
    if _is_small(kind) or kind.ndim != 1:
        return 0, 0
    front = max(alignment, kind.alignment, kind.offset_alignment, kind.coherence_granule, mmap.PAGESIZE)
    step = max(kind.size_multiple, 1)
    back = -(-(front + nbytes + _BACK) // step) * step - front - nbytes
    if kind.max_bytes is not None and front + nbytes + back > kind.max_bytes:
        return 0, 0
    return front, back


def _is_small(kind: MemoryKind) -> bool:
    return kind.capacity is not None and kind.capacity < _SMALL


def _first_other(content: bytes | None, value: int) -> int | None:
    """Returns the first byte that is not ``value``."""
    if content is None or content.count(value) == len(content):
        return None
    return next(i for i, byte in enumerate(content) if byte != value)
