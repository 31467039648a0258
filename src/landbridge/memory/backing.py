"""Backing: one piece of memory, and the accesses that all of its users must know of.

A Storage is a range of one Backing, and two Storages over the same bytes have the same one: the memory they were
imported from, the file behind a descriptor, the array that both borrow. It records the queued work, the programs that
the bytes are bound to, and who wrote last where host and devices do not see each other's writes. Its bytes count from
where its first Storage began.
"""

from __future__ import annotations

from collections.abc import Sized
from contextlib import AbstractContextManager
from typing import Any
from weakref import ref

from landbridge.device.state import DeviceState, concerns
from landbridge.memory.accesses import Access, Queued, Tenant, UsingProgram, changing
from landbridge.memory.allocators.base import Queue, QueuedUse
from landbridge.memory.coherence_domain import CoherenceDomain
from landbridge.process.locks import new_lock


class Backing:
    """The record of one piece of memory: queued accesses, programs bound to it, and coherence. It lives as long as a
    Storage over it does.

    An Access counts bytes from the beginning of its Storage; the ``origin`` that comes with it is the byte of this
    Backing where that Storage begins. ``start`` and ``stop`` of the methods are bytes of this Backing. Everything may
    be called from any thread; lists are replaced, never changed in place, and only while ``changing`` is held.
    """

    __slots__ = ("__weakref__", "domains", "lives", "locks", "merged", "order", "queued", "tenants")

    def __init__(self) -> None:
        #: The domains whose barriers are needed: one for the memory itself, or one for each device that sees it past a
        #: cache.
        self.domains: tuple[CoherenceDomain, ...] = ()
        #: The Backing that this one turned out to be a part of, and the byte of it at which this one begins.
        self.merged: tuple[Backing, int] | None = None
        #: A lock that runs hold on bytes that several programs have bound and one of them writes.
        self.order: AbstractContextManager[Any] | None = None
        self.queued: tuple[tuple[int, Queued], ...] = ()
        self.tenants: tuple[tuple[int, ref[Tenant]], ...] = ()
        self.locks: tuple[Sized, ...] = ()
        #: The lives of the devices whose own memory this is, or a part of it: it is gone when one of them ends.
        self.lives: tuple[DeviceState, ...] = ()

    @property
    def is_gone(self) -> bool:
        """Returns whether the memory went with its device, so that its addresses may be of other memory."""
        return any(life.failure is not None and not life.is_suspended for life in self.lives)

    def add_domain(self, domain: CoherenceDomain) -> None:
        """Add ``domain``: from now on all accesses of the bytes call its barriers, also runs that use them in place on
        the host.
        """
        with changing:
            self.domains += (domain,)
            self._have_tenants(self.live_tenants())

    def queue(self, origin: int, access: Access, use: QueuedUse) -> None:
        """Record an access that is done when ``use`` is."""
        self.forget_done()
        with changing:
            self.queued = (*self.queued, (origin, Queued(access, use)))
            concerns[0] += 1

    def uses(self, start: int, stop: int) -> tuple[QueuedUse, ...]:
        """Returns the pending work on the bytes ``start <= b < stop``."""
        return tuple(
            queued.use for origin, queued in self.queued if queued.access.conflicts(start - origin, stop - origin, True)
        )

    def wait_for_queued(self, start: int, stop: int, writes: bool, queue: Queue | None) -> None:
        """Wait for the queued accesses that an access of ``start <= b < stop`` on ``queue`` must follow (None: an
        access of the host). Work on ``queue`` itself is not waited for.
        """
        for origin, queued in self.queued:
            if queued.access.conflicts(start - origin, stop - origin, writes) and (
                queue is None or queued.use.queue != queue
            ):
                queued.use.wait(queued.access.holder)
        self.forget_done()

    def wait_for_runs(self, start: int, stop: int, writes: bool, program: UsingProgram | None) -> None:
        """Wait for the runs in other threads that an access of ``start <= b < stop`` must follow.

        ``program``: the program whose lock this thread holds, which is not waited for.
        """
        if all(self.locks):
            return
        for origin, tenant in self.live_tenants():
            other = tenant.program
            if (
                other is not program
                and tenant.conflicts(start - origin, stop - origin, writes)
                and other.is_used_elsewhere()
            ):
                other.wait_for_use()

    def forget_done(self) -> None:
        """Release queued accesses that are over, and what they kept alive."""
        done = {queued for _, queued in self.queued if queued.use.is_over()}
        if done:
            with changing:
                self.queued = tuple(entry for entry in self.queued if entry[1] not in done)

    def add_tenant(self, origin: int, tenant: Tenant) -> None:
        """Make accesses wait for the runs of ``tenant``'s program, for as long as ``tenant`` lives; only a weak
        reference to it is kept.

        Runs of several programs that share the bytes happen one after another where one of these may write them.
        """
        with changing:
            self._have_tenants([*self.live_tenants(), (origin, tenant)])

    def live_tenants(self) -> list[tuple[int, Tenant]]:
        """Returns the bindings of programs to the bytes that exist now, each with its origin."""
        return [(origin, tenant) for origin, known in self.tenants if (tenant := known()) is not None]

    def _have_tenants(self, tenants: list[tuple[int, Tenant]]) -> None:
        programs = {tenant.program for _, tenant in tenants}
        if len(programs) > 1 and any(tenant.may_write for _, tenant in tenants):
            self.order = self.order or new_lock()
            for program in programs:
                program.shares = True
        if self.domains:
            for _, tenant in tenants:
                tenant.program.shares |= tenant.in_place
        self.tenants = tuple((origin, ref(tenant)) for origin, tenant in tenants)
        self.locks = tuple([program.free for program in programs])

    def absorb(self, other: Backing, shift: int) -> None:
        """Take over the records of ``other``, whose byte 0 is byte ``shift`` here; the caller holds ``changing``."""
        self.order = self.order or other.order
        self.lives += other.lives
        self.queued += tuple((origin + shift, queued) for origin, queued in other.queued)
        for domain in other.domains:
            domain.shift(shift)
        self.domains += other.domains
        moved = [(origin + shift, tenant) for origin, tenant in other.live_tenants()]
        if moved or other.domains:
            self._have_tenants([*self.live_tenants(), *moved])
        # not idle: whoever looks there finds which Backing it became part of
        other.merged, other.locks = (self, shift), ((),)


def root_of(backing: Backing, origin: int) -> tuple[Backing, int]:
    """Returns the Backing that ``backing`` has become part of, and the byte there that ``origin`` is."""
    while backing.merged is not None:
        backing, shift = backing.merged
        origin += shift
    return backing, origin
