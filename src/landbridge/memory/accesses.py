"""Accesses of a Storage's bytes: open host views, and work that is queued. Both may be asked about from any thread.

The lists of a Storage are replaced, never changed, and only while ``changing`` is held; no device is called meanwhile,
as a device may free other Storages when asked whether it is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from landbridge.errors import HostAccessError
from landbridge.memory.allocators.base import Use

#: Held while the views or the queued work of any Storage are replaced.
changing = Lock()

#: How many views are open in the process; a list so that readers need no attribute of a module that changes.
open_views = [0]

#: Accesses queued so far in the process: while it is 0 no run need look for any.
queued_accesses = [0]


def any_view_open() -> bool:
    """Whether any host view is open inside a ``with``; while none is, no access can conflict with one."""
    return open_views[0] > 0


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """A use of the bytes ``start <= b < stop`` of a Storage; ``holder`` says by whom, for messages."""

    start: int
    stop: int
    writes: bool
    holder: str

    def conflicts(self, start: int, stop: int, writes: bool) -> bool:
        """Whether another access of that range may not happen at the same time."""
        return (self.writes or writes) and self.start < stop and start < self.stop

    def refuse(self, start: int, stop: int, writes: bool, what: str) -> None:
        """Raise HostAccessError when this is an open view that conflicts with ``what``."""
        if self.conflicts(start, stop, writes):
            raise HostAccessError(
                f"{what} {'writes' if writes else 'reads'} bytes {start} to {stop} while {self.holder} is open; "
                "leave its `with` block first"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Queued:
    """An access that is done later, and what is known of when."""

    access: Access
    use: Use
