"""Imports of host memory by devices that use it in place: each range once, for as long as its owner lives.

An application that passes the same few buffers again and again has each imported the first time. The cache refers to
owners weakly: an import is released when its owner dies, and a Storage over the import keeps the owner alive.
"""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from landbridge.device.api import Device, Region, Space
from landbridge.device.granted import granted
from landbridge.device.import_source import BusAddress, DmaBuf, HostPointer, ImportSource
from landbridge.device.protocols import AccessMode, Addresses, MemoryImport
from landbridge.device.state import DeviceState
from landbridge.errors import DeviceLostError, ZeroCopyError
from landbridge.memory.allocators.base import round_up
from landbridge.memory.borrowed_source import BorrowedSource
from landbridge.memory.coherence import mark_imported
from landbridge.memory.extents import OTHER_MEMORY, unreachable
from landbridge.memory.host_array import byte_bounds
from landbridge.memory.storage import Storage
from landbridge.memory_kind import MemoryKind
from landbridge.process.locks import new_lock

#: Sizes are rounded up to this where the owner has the bytes, as some drivers import only whole cache lines.
_LINE = 64

_Key = tuple[DeviceState, int, HostPointer, AccessMode]


class _User:
    """A Storage over an import, as the error names it to callers who want to free the imported bytes."""

    __slots__ = ("__weakref__", "_subject")

    def __init__(self, subject: str) -> None:
        self._subject = subject

    def __str__(self) -> str:
        return self._subject


class _Import:
    """One imported range, which is retained for the next request for it."""

    __slots__ = ("__weakref__", "_api", "_key", "_users", "device", "first", "space")

    def __init__(self, key: _Key, device: Device, api: MemoryImport, space: Space, first: int | None) -> None:
        self._key, self.device, self._api, self.space = key, device, api, space
        #: The address at which the import begins; None: where the requested range does.
        self.first = first
        self._users: weakref.WeakSet[_User] = weakref.WeakSet()

    def serves(self, key: _Key) -> bool:
        """Returns whether this import contains the range of ``key``, at an offset that the device's kernels accept."""
        if self.first is None or (key[0], key[1], key[3]) != (self._key[0], self._key[1], self._key[3]):
            return False
        begin, mine = key[2].address - self.first, self._key[2]
        alignment = self.device.memory_kind(self.space.scope).offset_alignment
        return 0 <= begin <= mine.nbytes - key[2].nbytes and begin % alignment == 0

    def user(self) -> _User:
        """Returns an object that marks the import as used for as long as it lives."""
        created = _User(f"an import by {self.device}")
        self._users.add(created)
        return created

    def drop_cached(self) -> None:
        """Release the range unless somebody uses it."""
        if not self._users:
            self.release()

    def release(self) -> None:
        """Release the range after its last command; the device does not access the owner's memory after that."""
        with _lock:
            if _imports.get(self._key) is self:
                del _imports[self._key]
                if not self.device.is_lost:
                    with suppress(DeviceLostError), self.device.state.watching(method="release_import"):
                        self._api.release_import(self.space)


_imports: dict[_Key, _Import] = {}
_lock = new_lock()


def import_range(
    storage: Storage, start: int, stop: int, device: Device, *, readonly: bool, writes: bool = True
) -> Storage:
    """Returns the bytes ``start <= b < stop`` of host ``storage`` as memory of ``device``; it keeps their owner alive.

    ``readonly`` ones are imported for reading. ``writes``: whether the device ever writes the others. Raises
    ZeroCopyError with the device's reason when it cannot import them.
    """
    root = _root(storage)
    first, last = _widened(storage, start, stop, device, root)
    sources = _sources(storage, start, stop)
    known = _import(device, root, HostPointer(first, last - first), sources, "r" if readonly else "rw")
    kind = device.memory_kind(known.space.scope)
    if writes and not (readonly or kind.coherent or _has_barriers(storage)):
        _check_granules(storage, start, stop, device, kind, root)
    if known.first is None:  # the import begins where the range does
        first, last = storage.address + start, storage.address + stop
    else:
        first = known.first
    skipped = storage.address + start - first
    if skipped % kind.offset_alignment and device.capability(Addresses) is None:
        raise ZeroCopyError(
            f"{device} cannot use {stop - start} bytes at {first + skipped:#x} in place: in what it imports they "
            f"begin at byte {skipped}, and its kernels take memory from multiples of {kind.offset_alignment}; take it "
            f"from lb.empty(..., device='{device}', host_access='rw'), or of an mmap, or allow a copy"
        )
    user = known.user()
    backing, origin = storage.part()
    held = Storage(
        Region(known.space, skipped),
        kind,
        last - first - skipped,
        readonly=readonly,
        owner=(user, storage),
        within=(backing, origin + start),
    )
    if sources and known.first is None:
        held.source = BorrowedSource(sources[0], storage)
    if (problem := unreachable(held, 0, stop - start)) is not None:
        held.free()
        del user
        known.drop_cached()
        raise ZeroCopyError(f"{device} cannot use {stop - start} bytes in place: {problem}; {OTHER_MEMORY}")
    mark_imported(held)
    if isinstance(root, Storage):
        root.add_export(user)
    return held


def _has_barriers(storage: Storage) -> bool:
    """Returns whether the memory has barriers of its own, which know its granules."""
    return any(domain.device is None for domain in storage.domains()[0])


def _check_granules(storage: Storage, start: int, stop: int, device: Device, kind: MemoryKind, root: object) -> None:
    """Raises ZeroCopyError where a barrier of ``device`` would reach bytes outside ``start <= b < stop``.

    Such a barrier would undo what the host writes there at the same time.
    """
    if start == stop:
        return
    granule, first, last = kind.coherence_granule, storage.address + start, storage.address + stop
    if root is storage and storage.owner is None and stop == storage.nbytes:
        last = storage.address + round_up(storage.reserved, _LINE)  # to where the allocator's next block may begin
    if first % granule or last % granule:
        raise ZeroCopyError(
            f"{device} cannot write {stop - start} bytes at {first:#x} in place: it and the host see each other's "
            f"writes only after barriers for whole granules of {granule} bytes, and these would reach bytes of others; "
            f"give memory that begins and ends at multiples of {granule}, as lb.empty makes it, or allow a copy"
        )


def _sources(storage: Storage, start: int, stop: int) -> list[DmaBuf | BusAddress]:
    """Returns what devices can import a range by besides its host address."""
    return [] if storage.source is None else [storage.source.part(start, stop - start)]


def _import(
    device: Device, root: object, pointer: HostPointer, sources: Sequence[DmaBuf | BusAddress], access: AccessMode
) -> _Import:
    """Returns the import of one of ``sources`` where the device accepts it, else of ``pointer``; once for each
    range.
    """
    api = device.capability(MemoryImport)
    if api is None:
        raise ZeroCopyError(f"{device} cannot use {pointer} in place: it has no import_memory; allow a copy")
    # Arrays have no hash. ``release`` removes the key while ``root`` dies, before another object may get its identity.
    key = (device.state, id(root), pointer, access)
    with _lock:
        known = _imports.get(key) or next((known for known in list(_imports.values()) if known.serves(key)), None)
        if known is None:
            source, space = _first_taken(device, api, [*sources, pointer], access)
            first = pointer.address if source is pointer else None
            known = _Import(key, device, api, space, first)
            weakref.finalize(root, known.release).atexit = False
            _imports[key] = known
            if isinstance(root, Storage):
                root.add_cache(known)
        return known


def _first_taken(
    device: Device, api: MemoryImport, sources: Sequence[ImportSource], access: AccessMode
) -> tuple[ImportSource, Space]:
    for source in sources[:-1]:
        with suppress(ZeroCopyError), device.state.submitting(f"an import of {source}", "import_memory"):
            return source, granted(api.import_memory(device.index, source, access), device, "import_memory")
    with device.state.submitting(f"an import of {sources[-1]}", "import_memory"):
        return sources[-1], granted(api.import_memory(device.index, sources[-1], access), device, "import_memory")


def _widened(storage: Storage, start: int, stop: int, device: Device, root: object) -> tuple[int, int]:
    """Returns the addresses of a range of ``storage``, widened to what ``device`` can import within the bytes of
    ``root``.

    Drivers import whole pages (``import_alignment``) or cache lines. Where no barrier is needed the bytes of others
    around the range may be imported too, as nobody touches them: a page that holds part of the range exists as long as
    the range does. A range that cannot be widened stays as it is, and the device says why it refuses it.
    """
    first, last = storage.address + start, storage.address + stop
    kinds = [kind for kind in device.memory_kinds.values() if kind.importable]
    step = max((kind.import_alignment for kind in kinds), default=1)
    low, high = _owned(storage, root)
    wide = first // step * step, round_up(max(last, first + 1), step)
    in_pages = step <= mmap.PAGESIZE and all(kind.coherent for kind in kinds)
    if in_pages or (low <= wide[0] and wide[1] <= high):
        return wide
    return first, min(round_up(max(last, first + 1), _LINE), max(high, last))


def _owned(storage: Storage, root: object) -> tuple[int, int]:
    """Returns the addresses that live as long as ``root`` does; our memory and mappings are whole pages."""
    start, stop = storage.address, storage.address + storage.nbytes
    paged = root is storage and storage.owner is None
    if isinstance(root, np.ndarray):
        start, stop = byte_bounds(root)
    elif root is not storage:
        try:
            whole = np.frombuffer(root, np.uint8)  # type: ignore[call-overload]
        except (BufferError, TypeError, ValueError):
            return start, stop
        start, stop = byte_bounds(whole)
        paged = isinstance(root.obj if isinstance(root, memoryview) else root, mmap.mmap)
    return (start // mmap.PAGESIZE * mmap.PAGESIZE, round_up(stop, mmap.PAGESIZE)) if paged else (start, stop)


def _root(storage: Storage) -> object:
    """Returns the object that the bytes live as long as: the array that owns them, or ``storage``."""
    owner = storage.owner
    if not isinstance(owner, np.ndarray):
        return storage
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner if owner.base is None or not _can_die(owner.base) else owner.base


def _can_die(owner: Any) -> bool:
    try:
        weakref.ref(owner)
    except TypeError:  # a buffer of Python: the array over it is the root
        return False
    return True
