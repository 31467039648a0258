"""Entry: the lock of a Session: one thread at a time, none in a child process, none once exit joins the threads."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar

from landbridge.errors import ForkedDeviceError, SessionBusyError
from landbridge.memory.accesses import open_views
from landbridge.process.exhaustion import raise_exhaustion
from landbridge.vm.background import AsyncRun
from landbridge.vm.thread_pool import is_exiting
from landbridge.vm.token_lock import NOBODY, LockToken, TokenLock

_FIRST_NAP, _LONGEST_NAP = 20e-6, 1e-3


class Entry(TokenLock):
    """The lock that every use of the Session ``name`` takes without waiting, with the reason when it is taken.

    ``pending`` is the background run that holds it, if one does. ``shares`` says whether memory may be bound that
    others use too: Sessions, or devices past the host's caches. ``waits``: the holder waits for other Sessions, and
    touches no memory meanwhile.
    """

    __slots__ = ("name", "pending", "shares", "waits")

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.pending: AsyncRun | None = None
        self.shares = self.waits = False
        _entries.add(self)

    def refuse(self) -> NoReturn:
        """Raises the error that says why the lock is taken."""
        if is_exiting():
            if threading.current_thread().daemon:
                threading.Event().wait()  # as Python itself stops its daemon threads
            raise SessionBusyError("the process is exiting and its threads are joined; run before that") from None
        if self.pending is not None:
            raise SessionBusyError(
                "a run_async of this Session is in flight; call wait() of its handle first"
            ) from None
        raise SessionBusyError(
            "this Session is used by another thread; run() and what is bound are for one at a time: call it, "
            "session(x), from any thread, or give each thread a Session of its own"
        ) from None

    def is_used_elsewhere(self) -> bool:
        """Returns whether another thread holds the lock and may touch memory."""
        return not self.free and not self.waits and self.owner != threading.get_ident()

    def wait_for_use(self) -> None:
        """Wait until the use that is under way in another thread is over, or the next use says so."""
        over = threading.Event()
        nap = _FIRST_NAP
        try:
            open_views[over] = self  # runs check it
            while self.is_used_elsewhere() and not over.wait(nap):
                nap = min(nap * 1.25, _LONGEST_NAP)
        finally:
            open_views.pop(over, None)

    def in_order(self, locks: Sequence[AbstractContextManager[Any]], action: Callable[[], object]) -> None:
        """Do ``action`` while ``locks`` are held, which are taken in one order by all Sessions."""
        if not locks:
            action()
            return
        self.waits = True
        try:
            with locks[0]:
                self.waits = False
                self.in_order(locks[1:], action)
        finally:
            self.waits = False

    def let_watchers_go(self) -> None:
        """Tell waiting threads, at the beginning of a use, that the one before is over."""
        for over, watched in open_views.copy().items():
            if watched is self and isinstance(over, threading.Event):
                over.set()

    def close(self) -> None:
        """Close the lock in a child process for all, including the thread that held it when the parent forked."""
        self.take, self.give_back = self._refuse_child, _drop
        self.waits = True  # for nobody: no run of this process uses its memory
        if self.pending is not None:
            self.pending.leave_behind()

    def _refuse_child(self) -> NoReturn:
        raise ForkedDeviceError("this Session is of the parent process; make a new one in the child")


def _drop(token: LockToken) -> None:
    pass


_entries: weakref.WeakSet[Entry] = weakref.WeakSet()


def _close_after_fork() -> None:
    for entry in list(_entries):
        entry.close()


os.register_at_fork(after_in_child=_close_after_fork)


_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def takes_lock(method: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Returns ``method`` of an object with an ``_entry``, wrapped to hold its lock; raises why when that is taken.

    Where each 100 ns counts, methods take the lock themselves.
    """

    @wraps(method)
    def with_lock(*args: Any, **kwargs: Any) -> _Result:  # unpacking ``self`` would cost as much as all else
        entry: Entry = args[0]._entry
        try:
            token = entry.take()
        except IndexError:
            entry.refuse()
        try:
            entry.owner = threading.get_ident()
            return method(*args, **kwargs)
        except Exception as error:
            raise_exhaustion(error, f"{entry.name} was used")
            raise
        finally:
            entry.owner = NOBODY
            entry.give_back(token)
            del token

    return with_lock
