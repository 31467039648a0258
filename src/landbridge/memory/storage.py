"""Storage: the bytes of one allocation, or borrowed ones, and who still looks at them.

A Storage frees its bytes when nothing refers to it any more; every exported view refers to it. ``free()`` does so
now, or says who holds on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from contextlib import AbstractContextManager
from sys import is_finalizing
from typing import Any, Protocol
from weakref import ref

from landbridge.device.api import Device, Region
from landbridge.device.protocols import HostMemory
from landbridge.device.state import concerns
from landbridge.errors import (
    HostViewError,
    StorageInUseError,
    UseAfterFreeError,
)
from landbridge.locks import new_lock
from landbridge.memory.accesses import Access, Queued, Tenant, UsingProgram, changing, open_views
from landbridge.memory.allocators.base import Queue, Use, wait_for
from landbridge.memory.allocators.in_flight import let_go
from landbridge.memory.byte_ranges import DirtyBytes
from landbridge.memory.lent_file import LentFile
from landbridge.memory.row_space import lies_in_a_table
from landbridge.memory_kind import MemoryKind


class ExportCache(Protocol):
    """Keeps exports of a Storage that nobody uses now, because the next user would get the same."""

    def let_go(self) -> None:
        """Drop them."""


class Storage:
    """``nbytes`` bytes from ``region`` on, of memory ``kind``; ``owner`` is kept alive for borrowed bytes."""

    __slots__ = (
        "__weakref__",
        "_address",
        "_caches",
        "_exports",
        "_queued",
        "_release",
        "_tenants",
        "_turns",
        "dirty",
        "file",
        "kind",
        "nbytes",
        "order",
        "owner",
        "readonly",
        "region",
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
        release: Callable[[Sequence[Use]], None] | None = None,
        uses: Sequence[Use] = (),
    ) -> None:
        self.region: Region | None = region
        self.kind = kind
        self.nbytes = nbytes
        self.readonly = readonly
        self.owner = owner
        #: Who wrote each granule last; None where host and device see each other's writes.
        self.dirty = None if kind.coherent or kind.host_access == "none" else DirtyBytes()
        self._release = release
        self._address = address
        #: What the bytes are of, where others can cut it.
        self.file: LentFile | None = None
        self._exports: set[ref[Any]] | None = None
        self._caches: set[ref[ExportCache]] | None = None
        self._tenants: tuple[ref[Tenant], ...] = ()
        self._turns: tuple[Sized, ...] = ()
        #: Held by runs on bytes that several programs have bound and one of them writes.
        self.order: AbstractContextManager[Any] | None = None
        self._queued: tuple[Queued, ...] = ()
        if uses:  # of the bytes' last owner: all but their own queue come after them
            everything = Access(0, nbytes, True, "work on what these bytes were before")
            self._queued = tuple(Queued(everything, use) for use in uses)

    @property
    def live_region(self) -> Region:
        """Where the bytes are; raises UseAfterFreeError once they were freed."""
        if self.region is None:
            raise UseAfterFreeError("this storage was freed; allocate another one with lb.empty")
        return self.region

    @property
    def device(self) -> Device:
        """The device whose memory this is."""
        return self.live_region.space.device

    @property
    def address(self) -> int:
        """The host address of the first byte; raises HostViewError for memory the host cannot address.

        That of a file which others cut meanwhile is such memory.
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
                    f"rows of scope {region.space.scope!r} of {region.space.device} lie apart and have no address "
                    "together; copy the tensor to the host with t.to_device('cpu')"
                )
            self.wait(0, self.nbytes, writes=True)  # a device need not give an address while work is pending
            self._address = api.host_pointer(region.space) + region.byte_offset
        elif concerns[0]:
            self.check_device()
        elif self.region is None:
            self.live_region  # noqa: B018  raises
        return self._address

    def check_file(self) -> None:
        """Raise HostViewError where these are bytes of a file that others cut meanwhile."""
        if self.file is not None:
            self.file.check()

    def check_device(self) -> None:
        """Raise DeviceLostError when the bytes are gone with their device; those of a host owner stay."""
        if self.owner is None:
            self.live_region.space.device.state.check()

    @property
    def users(self) -> list[str]:
        """Who uses the bytes besides Tensors, by name: exports, open views, programs they are bound to."""
        exports = [export() for export in list(self._exports or ())]
        return sorted(
            [*(str(export) for export in exports if export is not None), *(view.holder for view in self._views())]
        )

    def free(self) -> None:
        """Free the bytes now; raises StorageInUseError naming the holders of exported views. Twice is once."""
        if self.region is None:
            return
        for known in [known() for known in self._caches or ()]:
            if known is not None:
                known.let_go()
        with changing:  # whoever becomes a user from here on finds that they are gone
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
        uses = tuple(queued.use for queued in self._queued if not device.is_lost)
        release, self._release = self._release, None
        self._queued, self.region = (), None
        if release is not None:
            release(uses)  # whose duty it is now that they are done first
        else:
            wait_for(uses)  # before the owner is let go
        self.owner = None

    def __del__(self, is_finalizing: Callable[[], bool] = is_finalizing) -> None:
        # While the interpreter exits the device may be gone already, as this module's names may be, and the system
        # takes the memory back.
        region = getattr(self, "region", None)
        if region is not None and (self._release or self._queued) and not is_finalizing():
            self._free(region.space.device)

    def add_export(self, holder: object) -> None:
        """Count ``holder``, whose ``str`` names it, as a user of the bytes for as long as it lives.

        Whoever does looks afterwards whether they are still there.
        """
        with changing:
            if self._exports is None:
                self._exports = set()
            self._exports.add(ref(holder, self._exports.discard))

    def add_tenant(self, tenant: Tenant) -> None:
        """Have accesses wait for the runs of ``tenant``, for as long as that lives.

        Runs of several programs that share the bytes, and do not only read them, happen one after another.
        """
        with changing:
            tenants = (*self._live_tenants(), tenant)
            programs = {known.program for known in tenants}
            if len(programs) > 1 and any(known.may_write for known in tenants):
                self.order = self.order or new_lock()
                for program in programs:
                    program.shares = True
            self._tenants = tuple(map(ref, tenants))
            self._turns = tuple([program.free for program in programs])

    def _live_tenants(self) -> list[Tenant]:
        return [tenant for known in self._tenants if (tenant := known()) is not None]

    def add_cache(self, cache: ExportCache) -> None:
        """Have ``cache`` let go of what it keeps for later before a ``free()`` asks who uses the bytes."""
        if self._caches is None:
            self._caches = set()
        self._caches.add(ref(cache, self._caches.discard))

    @property
    def is_ready(self) -> bool:
        """Whether the bytes are there, whatever others do, no access is pending and no run under way: nobody waits."""
        return self.region is not None and not self._queued and self.file is None and all(self._turns)

    def queue(self, access: Access, use: Use) -> None:
        """Note an access that is done when ``use`` is."""
        self._forget_done()
        with changing:
            self._queued = (*self._queued, Queued(access, use))
            concerns[0] += 1

    @property
    def has_queued(self) -> bool:
        """Whether accesses may be pending, so that ``wait`` is worth its call."""
        return bool(self._queued)

    def wait(
        self, start: int, stop: int, *, writes: bool, queue: Queue | None = None, program: UsingProgram | None = None
    ) -> None:
        """Wait for the queued accesses, and runs of other threads, that an access of ``start <= b < stop`` must follow.

        ``queue``: where that access will be submitted, which needs no wait for what is there already. ``program``:
        whose turn this thread has.
        """
        if self._queued:
            self.device.state.check()
            for queued in self._queued:
                if queued.access.conflicts(start, stop, writes) and (queue is None or queued.use.queue != queue):
                    queued.use.wait()
            self._forget_done()
            let_go((self.device,))
        if not all(self._turns):
            for tenant in self._live_tenants():
                other = tenant.program
                if other is not program and tenant.conflicts(start, stop, writes) and other.is_used_elsewhere():
                    other.wait_for_use()

    def _forget_done(self) -> None:
        """Let go of queued accesses that are over, and of what they kept alive."""
        done = {queued for queued in self._queued if queued.use.is_over()}
        if done:
            with changing:
                self._queued = tuple(queued for queued in self._queued if queued not in done)

    def check_access(self, start: int, stop: int, *, writes: bool, what: str) -> None:
        """Raise HostAccessError when an open view conflicts with ``what``, which uses ``start <= b < stop``."""
        for view in self._views():
            view.refuse(start, stop, writes, what)

    def _views(self) -> list[Access]:
        return [view for view, of in list(open_views.items()) if of is self and isinstance(view, Access)]

    def open_view(self, access: Access) -> None:
        """Enter a host view; raises HostAccessError when it conflicts with one that is open.

        ``open_views.pop(access, None)`` leaves it.
        """
        with changing:
            self.check_access(access.start, access.stop, writes=access.writes, what=access.holder)
            open_views[access] = self
