"""Locks that a fork leaves free: a child has none of the threads that may have held them.

A fork waits for whoever holds one, so that what they guard is whole in the child, for as long as ``_PATIENCE``; the
child's are free in any case. All locks of the package are made here.
"""

from __future__ import annotations

import functools
import os
import time
import weakref
from collections.abc import Callable
from threading import RLock
from typing import Any, TypeVar

#: Seconds that a fork waits: longer than LLVM takes for a module.
_PATIENCE = 10.0
_RLOCK = type(RLock())

_locks: weakref.WeakSet[RLock] = weakref.WeakSet()
_held: list[RLock] = []


def new_lock() -> RLock:
    """A lock that its own thread may take again: finalizers and signal handlers may come at any moment."""
    lock = RLock()
    _locks.add(lock)
    return lock


def adopt(lock: object) -> None:
    """Do the same for a lock of another package, which leaves it to its fate; what is no RLock is left alone."""
    if isinstance(lock, _RLOCK):
        _locks.add(lock)


_T = TypeVar("_T")


class cached_property(functools.cached_property[_T]):  # noqa: N801
    """That of functools; before Python 3.12 it has a lock for all instances of a class."""

    def __init__(self, function: Callable[[Any], _T]) -> None:
        super().__init__(function)
        adopt(getattr(self, "lock", None))


def _take_all() -> None:
    deadline = time.monotonic() + _PATIENCE
    locks = list(_locks)
    taken = next((lock for lock in locks if not _take(lock)), None)
    while taken is not None and (left := deadline - time.monotonic()) > 0:
        _give_back()  # never wait with one in hand: who has the others may wait for it
        if taken.acquire(timeout=left):
            _held.append(taken)
        taken = next((lock for lock in locks if not _take(lock)), None)


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
