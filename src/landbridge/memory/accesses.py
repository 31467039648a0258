"""Accesses of a Storage's bytes: open host views, queued work, and programs that the bytes are bound to.

Everything here may be called from any thread. The lists of a Storage are replaced, never changed in place, and only
while the lock ``changing`` is held. No device is called while it is held: a device that is asked whether it is done may
free other Storages.
"""

from __future__ import annotations

import os
from collections.abc import Sized
from dataclasses import field
from threading import get_ident
from typing import Protocol

from landbridge.errors import HostAccessError
from landbridge.memory.allocators.base import QueuedUse
from landbridge.process.locks import new_lock
from landbridge.records import record

#: This lock is held while the record of accesses of any Storage is replaced.
changing = new_lock()

#: The open host views of the process: the Access of each, and the Storage that it views. Runs look further only when
#: there is one. An entry is added and removed by one call of a dict, which no interrupt can split.
open_views: dict[object, object] = {}


def any_view_open() -> bool:
    """Returns whether any host view is open inside a ``with``; while none is, no access can conflict with one."""
    return bool(open_views)


@record(frozen=True, slots=True, eq=False)
class Access:
    """A use of the bytes ``start <= b < stop`` of a Storage, counted from its first one, by ``thread``. ``holder``
    names the user in messages.
    """

    start: int
    stop: int
    writes: bool
    holder: str
    thread: int = field(default_factory=get_ident)

    def conflicts(self, start: int, stop: int, writes: bool) -> bool:
        """Returns whether this access and one of ``start <= b < stop`` must not happen at once: the ranges share a
        byte, and one of the two writes.
        """
        return (self.writes or writes) and self.start < stop and start < self.stop

    def refuse(self, start: int, stop: int, writes: bool, subject: str) -> None:
        """Raises HostAccessError when this open view conflicts with an access of ``start <= b < stop`` by
        ``subject``.
        """
        if self.conflicts(start, stop, writes):
            raise HostAccessError(
                f"{subject} {'writes' if writes else 'reads'} bytes {start} to {stop} while {self.holder} is open; "
                "leave its `with` block first"
            )


@record(frozen=True, slots=True, eq=False)
class Queued:
    """An access by work that is queued on a device; ``use`` tells when that work is over."""

    access: Access
    use: QueuedUse


class Tenant(Protocol):
    """A program's binding to bytes of a Storage. It counts as a use of them during each run of the program, whichever
    thread runs it.
    """

    @property
    def may_write(self) -> bool:
        """Returns whether the program ever writes the bytes."""

    @property
    def in_place(self) -> bool:
        """Returns whether code of the host uses the bytes in place."""

    @property
    def program(self) -> UsingProgram:
        """Returns the program that uses the bytes."""

    def conflicts(self, start: int, stop: int, writes: bool) -> bool:
        """Returns whether an access of ``start <= b < stop`` must not happen during a run of the program."""


class UsingProgram(Protocol):
    """The part of a Session that the Storages of its bound memory call."""

    shares: bool
    """True when others use one of the Storages too: another program, where one of the two writes it; or a device that
    sees it past the host's caches, while code of the host uses it in place.
    """

    @property
    def free(self) -> Sized:
        """Returns a container that is empty while the program is in use."""

    def is_used_elsewhere(self) -> bool:
        """Returns whether a run may be under way in another thread."""

    def wait_for_use(self) -> None:
        """Wait until that run is over."""


def _forget_other_threads() -> None:
    """Remove from ``open_views``, in a child process after ``fork``, the views that other threads of the parent had
    open.
    """
    for known in list(open_views):
        if not isinstance(known, Access) or known.thread != get_ident():
            open_views.pop(known, None)


os.register_at_fork(after_in_child=_forget_other_threads)
