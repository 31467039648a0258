"""Locks that a fork leaves free: a child has none of the threads that may have held them.

A fork waits for whoever holds one, so that what they guard is whole in the child, for as long as ``_PATIENCE``; the
child's are free in any case. All locks of the package are made here.
"""

from __future__ import annotations

import os
import time
import weakref
from threading import RLock

#: Seconds that a fork waits: longer than LLVM takes for a module.
_PATIENCE = 10.0
_NAP = 1e-3

_locks: weakref.WeakSet[RLock] = weakref.WeakSet()
_held: list[RLock] = []


def new_lock() -> RLock:
    """A lock that its own thread may take again: finalizers and signal handlers may come at any moment."""
    lock = RLock()
    _locks.add(lock)
    return lock


def _take_all() -> None:
    deadline = time.monotonic() + _PATIENCE
    while not all(map(_take, list(_locks))) and time.monotonic() < deadline:
        _give_back()  # never wait with one in hand: who has the others may wait for it
        time.sleep(_NAP)


def _take(lock: RLock) -> bool:
    taken = lock.acquire(blocking=False)
    if taken:
        _held.append(lock)
    return taken


def _give_back() -> None:
    while _held:
        _held.pop().release()


def _free_all() -> None:
    _give_back()
    for lock in list(_locks):
        if _take(lock):  # or has it, as it forked while it did
            _give_back()
        else:
            lock._at_fork_reinit()  # type: ignore[attr-defined]  # as threading does with its own


os.register_at_fork(before=_take_all, after_in_parent=_give_back, after_in_child=_free_all)
