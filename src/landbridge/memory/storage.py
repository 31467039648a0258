"""Storage: the bytes of one allocation, or borrowed bytes, with a record of their users.

A Storage frees its bytes when nothing refers to it any more, and every exported view refers to it. ``free()`` frees
them at once, or raises an error that names who still uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import count
from sys import is_finalizing
from typing import Any, ClassVar, Protocol
from weakref import ref

from landbridge.device.api import Device, Region
from landbridge.device.granted import host_pointer
from landbridge.device.memory_provider import Caching
from landbridge.device.protocols import HostMemory
from landbridge.device.state import concerns
from landbridge.errors import (
    HostViewError,
    StorageInUseError,
    UseAfterFreeError,
)
from landbridge.memory.accesses import Access, Tenant, UsingProgram, changing, open_views
from landbridge.memory.allocators.base import Queue, QueuedUse, wait_for
from landbridge.memory.allocators.in_flight import release_finished
from landbridge.memory.backing import Backing, root_of
from landbridge.memory.borrowed_file import BorrowedFile
from landbridge.memory.borrowed_source import BorrowedSource
from landbridge.memory.coherence_domain import CoherenceDomain
from landbridge.memory.device_barriers import enter_domain, leave_domain
from landbridge.memory.row_space import lies_in_a_table
from landbridge.memory.windows import AddressWindows, WindowKeeper, host_windows
from landbridge.memory_kind import MemoryKind
from landbridge.process.process_bound import ProcessBound

_numbers = count(1)


class ExportCache(Protocol):
    """A cache of exports of a Storage that nobody uses now, because the next user would get the same."""

    def drop_cached(self) -> None:
        """Release the cached exports."""


class Storage(ProcessBound):
    """``nbytes`` bytes from ``region`` on, of memory ``kind``; ``owner`` is kept alive for borrowed bytes.

    ``within``: a Backing that the bytes are known to be part of, and the byte of it at which they begin. Most Storages
    pass none and look one up when users must know of each other. ``holder``: the object by which address windows know
    the bytes, where it is not the Storage.
    """

    _instead: ClassVar[str] = "pickle or copy a Tensor of it"

    __slots__ = (
        "__weakref__",
        "_address",
        "_backing",
        "_caches",
        "_exports",
        "_holder",
        "_number",
        "_origin",
        "_release",
        "domain",
        "file",
        "is_state",
        "is_window",
        "kind",
        "nbytes",
        "owner",
        "readonly",
        "region",
        "repeats",
        "reserved",
        "source",
    )

    def __init__(
        self,
        region: Region,
        kind: MemoryKind,
        nbytes: int,
        *,
        readonly: bool = False,
        owner: object = None,
        address: int | None = None,
        release: Callable[[Sequence[QueuedUse]], None] | None = None,
        uses: Sequence[QueuedUse] = (),
        within: tuple[Backing, int] | None = None,
        holder: WindowKeeper | None = None,
    ) -> None:
        self.region: Region | None = region
        self.kind = kind
        self.nbytes = nbytes
        #: How many bytes, from the first one on, belong to no other Storage: at least ``nbytes``.
        self.reserved = nbytes
        self.readonly = readonly
        self.owner = owner
        #: Whether runs carry it on: a kernel that only moves what is in it is a copy that need not be.
        self.is_state = False
        #: Whether a state slides through it: the bytes that it uses change from run to run.
        self.is_window = False
        #: After how many bytes the same ones follow again; 0: never.
        self.repeats = 0
        #: The domain that records who wrote each granule last; None where host and device see each other's writes.
        self._release = release
        self._address = address
        self._number = 0
        self._backing: Backing | None
        self._backing, self._origin = (None, 0) if within is None else within
        self._holder = holder
        #: The domain of the device that owns this memory, where host and device need barriers.
        self.domain: CoherenceDomain | None = None
        #: The file of the bytes, where others can truncate it.
        self.file: BorrowedFile | None = None
        #: The source of imported memory, where devices can use more of it than its host address.
        self.source: BorrowedSource | None = None
        self._exports: set[ref[Any]] | None = None
        self._caches: set[ref[ExportCache]] | None = None
        if not kind.coherent and kind.host_access != "none":
            self._enter_domain(region)
        if uses:  # work of the bytes' last owner, which all queues but its own must follow
            everything = Access(0, nbytes, True, "work on what these bytes were before")
            for use in uses:
                self.queue(everything, use)

    @property
    def number(self) -> int:
        """Returns a number that no other Storage has, had or will have."""
        if not self._number:
            self._number = next(_numbers)
        return self._number

    @property
    def is_import(self) -> bool:
        """Returns whether the memory belongs to others."""
        return self.owner is not None or self._holder is not None

    def _enter_domain(self, region: Region) -> None:
        backing, origin = self.part()
        self.domain = enter_domain(region, self.kind, backing, origin, self.nbytes, is_import=self.is_import)

    def domains(self) -> tuple[tuple[CoherenceDomain, ...], int]:
        """Returns the domains whose barriers accesses need, and the byte of the Backing at which the bytes begin."""
        if self._is_waited_for() is None:
            return (), 0
        backing, origin = self.part()
        domains, stop = backing.domains, origin + self.nbytes
        if all(domain.origin < stop and origin < domain.origin + domain.nbytes for domain in domains):
            return domains, origin
        return tuple(d for d in domains if d.origin < stop and origin < d.origin + d.nbytes), origin

    def part(self) -> tuple[Backing, int]:
        """Returns the Backing that these bytes are part of, and the byte of it at which they begin."""
        with changing:
            if self._backing is None:
                self._backing = self._new_backing()
                if self._address is not None:
                    self.be_known(host_windows, self._address)
            # Not the Backing that it has become part of: windows refer to this one, for as long as it lives.
            return root_of(self._backing, self._origin)

    def _new_backing(self) -> Backing:
        created = Backing()
        if not self.is_import and self.region is not None:
            created.lives = (self.region.space.device.state,)
        return created

    @property
    def has_record(self) -> bool:
        """Returns whether a Backing records the accesses of these bytes; without one, nobody had to know of any."""
        return self._backing is not None

    def be_known(self, windows: AddressWindows, start: int) -> None:
        """Register the Backing in ``windows`` under the addresses from ``start`` on."""
        if self._backing is None:
            self._backing = self._new_backing()
        windows.enter(start, start + self.nbytes, self._backing, self._origin, self)

    def _is_waited_for(self) -> Backing | None:
        """Returns the Backing where one exists: of this Storage, or of another one that shares bytes with it."""
        if self._backing is not None:
            return self.part()[0]
        if self._address is None or not host_windows:
            return None
        return self.part()[0] if host_windows.find(self._address, self._address + self.nbytes) else None

    @property
    def caching(self) -> Caching:
        """Returns how the host reaches the bytes: as their provider says, else as their memory kind says."""
        if self.source is not None:  # else it is a device's own, or an ordinary array
            for domain in self.part()[0].domains:
                if domain.memory is not None:
                    return domain.memory.caching
            if self.source.caching is not None:
                return self.source.caching
        return Caching.CACHED if self.kind.cached else Caching.UNCACHED

    @property
    def live_region(self) -> Region:
        """Returns the region of the bytes; raises UseAfterFreeError once they were freed."""
        if self.region is None:
            raise UseAfterFreeError("this storage was freed; allocate another one with lb.empty")
        return self.region

    @property
    def device(self) -> Device:
        """Returns the device whose memory this is."""
        return self.live_region.space.device

    @property
    def address(self) -> int:
        """Returns the host address of the first byte; raises HostViewError for memory the host cannot address.

        A mapped file that others truncated is such memory.
        """
        self.check_file()
        if self._address is None:
            self.check_device()
            region = self.live_region
            api = region.space.device.capability(HostMemory)
            if self.kind.host_access == "none" or api is None:
                raise HostViewError(
                    f"the host cannot address scope {region.space.scope!r} of {region.space.device} (host access "
                    f"{self.kind.host_access!r}); copy the tensor to the host with t.to_device('cpu')"
                )
            if lies_in_a_table(region.space):
                raise HostViewError(
                    f"rows of scope {region.space.scope!r} of {region.space.device} have separate addresses, and no "
                    "common one; copy the tensor to the host with t.to_device('cpu')"
                )
            if self.caching is Caching.DEVICE:
                raise HostViewError(
                    f"the host maps these {self.nbytes} bytes of {region.space.device} as registers (caching "
                    "'device'), where vector and unaligned accesses fault; map them write-combined or cached, or have "
                    "the device copy them, with copy_from or to_device"
                )
            self.wait(0, self.nbytes, writes=True)  # a device need not give an address while work is pending
            # of coherent memory it was checked when that was allocated; what is imported is at any address
            is_checked = self.kind.coherent or self.is_import
            alignment = 1 if is_checked else self.kind.alignment
            self._address = host_pointer(api, region.space, alignment) + region.byte_offset
            if self._backing is not None:
                self.be_known(host_windows, self._address)
        elif concerns[0]:
            self.check_device()
        elif self.region is None:
            self.live_region  # noqa: B018  raises
        return self._address

    def check_file(self) -> None:
        """Raises HostViewError for bytes of a file that others have truncated."""
        if self.file is not None:
            self.file.check()

    def check_device(self) -> None:
        """Raises DeviceLostError when the bytes are gone with their device; those of a host owner stay, unless they are
        memory of a device that was lost.
        """
        if self.owner is None:
            self.live_region.space.device.state.check()
        elif self._backing is not None:
            for life in self.part()[0].lives:
                life.check()

    @property
    def is_gone(self) -> bool:
        """Returns whether the bytes went with their device, or with the device whose memory they are."""
        if self.owner is None:
            return self.live_region.space.device.is_lost
        return self._backing is not None and self.part()[0].is_gone

    @property
    def users(self) -> list[str]:
        """Returns the names of the users that are not Tensors: exports, open views, programs bound to the bytes."""
        exports = [export() for export in list(self._exports or ())]
        views = [view.holder for view, storage in self._views() if storage is self]
        return sorted([*(str(export) for export in exports if export is not None), *views])

    def free(self) -> None:
        """Free the bytes now; raises StorageInUseError that names who holds exported views. Once freed, does
        nothing.
        """
        if self.region is None:
            return
        for known in [known() for known in self._caches or ()]:
            if known is not None:
                known.drop_cached()
        with changing:  # a new user finds from here on that the bytes are gone
            users, region = self.users, self.region
            if not users:
                self.region = None
        if users:
            raise StorageInUseError(
                f"{self.nbytes} bytes on {self.device} are still in use by {', '.join(users)}; "
                "drop those first, or let the storage go out of scope instead of freeing it"
            )
        if region is not None:
            self._free(region.space.device)

    def _free(self, device: Device) -> None:
        uses: tuple[QueuedUse, ...] = ()
        if self._backing is not None and not device.is_lost:
            backing, origin = self.part()
            uses = backing.uses(origin, origin + self.nbytes)
            if self.domain is not None and self.is_import:
                wait_for(uses)
                leave_domain(self.domain, backing)
        release, self._release = self._release, None
        self._backing = self.domain = self.region = None
        if release is not None:
            release(uses)  # its new owner waits for them
        else:
            wait_for(uses)  # before the owner is released
        self.owner = None

    def __del__(self, is_finalizing: Callable[[], bool] = is_finalizing) -> None:
        # While the interpreter exits the device may be gone already, as this module's names may be, and the system
        # takes the memory back.
        region = getattr(self, "region", None)
        if region is not None and (self._release or self._backing) and not is_finalizing():
            self._free(region.space.device)

    def add_export(self, holder: object) -> None:
        """Count ``holder``, whose ``str`` names it, as a user of the bytes for as long as it lives.

        The caller checks afterwards that the bytes are still there.
        """
        with changing:
            if self._exports is None:
                self._exports = set()
            self._exports.add(ref(holder, self._exports.discard))

    def add_tenant(self, tenant: Tenant) -> None:
        """Make accesses wait for the runs of ``tenant``, for as long as that lives.

        Runs of several programs that share the bytes, and do not only read them, happen one after another.
        """
        backing, origin = self.part()
        backing.add_tenant(origin, tenant)

    @property
    def order(self) -> AbstractContextManager[Any] | None:
        """Returns the lock that runs hold on bytes that several programs have bound and one of them writes."""
        return None if self._backing is None else self.part()[0].order

    def add_cache(self, cache: ExportCache) -> None:
        """Register ``cache``, which a ``free()`` empties before it looks for users of the bytes."""
        if self._caches is None:
            self._caches = set()
        self._caches.add(ref(cache, self._caches.discard))

    @property
    def is_ready(self) -> bool:
        """Returns whether the bytes exist, no access is pending and no run is under way, so that nobody has to wait."""
        backing = self._backing
        if backing is None and host_windows:
            backing = self._is_waited_for()
        return (
            self.region is not None
            and self.file is None
            and (backing is None or (not backing.queued and all(backing.locks)))
        )

    def queue(self, access: Access, use: QueuedUse) -> None:
        """Record an access that is done when ``use`` is."""
        backing, origin = self.part()
        backing.queue(origin, access, use)

    @property
    def has_queued(self) -> bool:
        """Returns whether accesses may be pending, so that ``wait`` is worth its call."""
        backing = self._is_waited_for()
        return backing is not None and bool(backing.queued)

    def wait(
        self, start: int, stop: int, *, writes: bool, queue: Queue | None = None, program: UsingProgram | None = None
    ) -> None:
        """Wait for the queued accesses, and runs of other threads, that an access of ``start <= b < stop`` must follow.

        ``queue``: where that access will be submitted, which needs no wait for work that is there already. ``program``:
        the one whose lock this thread holds.
        """
        if self._is_waited_for() is None:
            return
        backing, origin = self.part()
        if backing.queued:
            self.device.state.check()
            backing.wait_for_queued(origin + start, origin + stop, writes, queue)
            release_finished((self.device,))
        backing.wait_for_runs(origin + start, origin + stop, writes, program)

    def check_access(self, start: int, stop: int, *, writes: bool, subject: str) -> None:
        """Raises HostAccessError when an open view conflicts with ``subject``, which uses ``start <= b < stop``."""
        for view, storage in self._views():
            distance = 0 if storage is self else self.part()[1] - storage.part()[1]
            view.refuse(start + distance, stop + distance, writes, subject)

    def _views(self) -> list[tuple[Access, Storage]]:
        """Returns the open views of the Backing, each with the Storage that it views."""
        found = [
            (view, storage)
            for view, storage in open_views.copy().items()
            if isinstance(view, Access) and type(storage) is Storage
        ]
        return [(view, storage) for view, storage in found if storage is self or self._shares_with(storage)]

    def _shares_with(self, other: Storage) -> bool:
        return other.region is not None and self.part()[0] is other.part()[0]

    def open_view(self, access: Access) -> None:
        """Record a host view as open; raises HostAccessError when it conflicts with one that is open.

        ``open_views.pop(access, None)`` closes it.
        """
        with changing:
            self.check_access(access.start, access.stop, writes=access.writes, subject=access.holder)
            open_views[access] = self
