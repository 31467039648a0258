"""Accesses of a Storage's bytes: open host views, queued work, and the programs that the bytes are bound to.

All may be asked about from any thread. The lists of a Storage are replaced, never changed, and only while ``changing``
is held; no device is called meanwhile, as a device may free other Storages when asked whether it is done.
"""

from __future__ import annotations

import os
from collections.abc import Sized
from dataclasses import field
from threading import get_ident
from typing import Protocol

from landbridge.errors import HostAccessError
from landbridge.locks import new_lock
from landbridge.memory.allocators.base import QueuedUse
from landbridge.records import record

#: Held while what is known of the accesses of any Storage is replaced.
changing = new_lock()

#: What is open in the process, and of what: the Access of each view of its Storage. Runs look further only when there
#: is something. Entered and left by one call of a dict, which no interrupt can split.
open_views: dict[object, object] = {}


def any_view_open() -> bool:
    """Whether any host view is open inside a ``with``; while none is, no access can conflict with one."""
    return bool(open_views)


@record(frozen=True, slots=True, eq=False)
class Access:
    """A use of the bytes ``start <= b < stop`` of a Storage; ``holder`` says by whom, for messages."""

    start: int
    stop: int
    writes: bool
    holder: str
    thread: int = field(default_factory=get_ident)

    def conflicts(self, start: int, stop: int, writes: bool) -> bool:
        """Whether another access of that range may not happen at the same time."""
        return (self.writes or writes) and self.start < stop and start < self.stop

    def refuse(self, start: int, stop: int, writes: bool, subject: str) -> None:
        """Raise HostAccessError when this is an open view that conflicts with ``subject``."""
        if self.conflicts(start, stop, writes):
            raise HostAccessError(
                f"{subject} {'writes' if writes else 'reads'} bytes {start} to {stop} while {self.holder} is open; "
                "leave its `with` block first"
            )


@record(frozen=True, slots=True, eq=False)
class Queued:
    """An access that is done later, and what is known of when."""

    access: Access
    use: QueuedUse


class Tenant(Protocol):
    """A use of bytes by a program that they are bound to; it happens in whichever thread runs the program."""

    @property
    def may_write(self) -> bool:
        """Whether the program ever writes them."""

    @property
    def in_place(self) -> bool:
        """Whether code of the host uses them where they are."""

    @property
    def program(self) -> UsingProgram:
        """Whose use it is."""

    def conflicts(self, start: int, stop: int, writes: bool) -> bool:
        """Whether an access of that range may not happen during a run."""


class UsingProgram(Protocol):
    """What the Storages of bound memory know of a Session."""

    shares: bool
    """Set when others use one of them, too: another program, and one of the two writes it; or a device that sees it
    past the host's caches, while code of the host uses it in place."""

    @property
    def free(self) -> Sized:
        """Empty while the program is in use."""

    def is_used_elsewhere(self) -> bool:
        """Whether a run may be under way in another thread."""

    def wait_for_use(self) -> None:
        """Return once that run is over."""


def _forget_other_threads() -> None:
    """In a child process: what other threads of the parent had open."""
    for known in list(open_views):
        if not isinstance(known, Access) or known.thread != get_ident():
            open_views.pop(known, None)


os.register_at_fork(after_in_child=_forget_other_threads)
