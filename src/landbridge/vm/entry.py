"""Entry: who may use a Session now. One thread at a time, none in a child process, none once exit joins the threads."""

from __future__ import annotations

import os
import threading
import weakref
from typing import NoReturn

from landbridge.errors import ForkedDeviceError, SessionBusyError
from landbridge.vm.background import AsyncRun
from landbridge.vm.thread_pool import is_exiting


class Entry:
    """The ``lock`` that every use of a Session takes, without waiting, and why it cannot be taken.

    ``pending`` is the run in the background that holds it, if one does.
    """

    __slots__ = ("__weakref__", "_forked", "lock", "pending")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pending: AsyncRun | None = None
        self._forked = False
        _entries.add(self)

    def refuse(self) -> NoReturn:
        """Raise what says why the lock is taken."""
        if self._forked:
            raise ForkedDeviceError("this Session is of the parent process; make a new one in the child")
        if is_exiting():
            if threading.current_thread().daemon:
                threading.Event().wait()  # as Python itself stops its daemon threads
            raise SessionBusyError("the process is exiting and its threads are joined; run before that")
        if self.pending is not None:
            raise SessionBusyError("a run_async of this Session is in flight; call wait() of its handle first")
        raise SessionBusyError("this Session is used by another thread; give each thread a Session of its own")

    def close(self) -> None:
        """Let nobody in any more, in a child process."""
        self._forked = True
        self.lock.acquire(blocking=False)  # who holds it instead is not in this process


_entries: weakref.WeakSet[Entry] = weakref.WeakSet()


def _close_after_fork() -> None:
    for entry in list(_entries):
        entry.close()


os.register_at_fork(after_in_child=_close_after_fork)
