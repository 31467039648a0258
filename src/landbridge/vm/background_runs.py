"""Runs of a Session in the background: the worker holds the lock that ``run_async`` took, and gives it back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from landbridge.device.stream import carried
from landbridge.exhaustion import raise_exhaustion, reports_exhaustion
from landbridge.vm.background import AsyncRun, Worker
from landbridge.vm.entry import Entry
from landbridge.vm.token_lock import NOBODY, LockToken

#: Executes what is bound and says when nothing can come before it any more.
ExecuteAndTell = Callable[[Callable[[], object]], object]


class BackgroundRuns:
    """Starts them, one at a time, with the lock of ``entry``, in a thread that is made for the first one."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._worker: Worker | None = None

    def start(self, make_ready: Callable[[], object], execute: ExecuteAndTell) -> AsyncRun:
        """Take the lock, ``make_ready`` here, then ``execute`` in the worker; what ``make_ready`` raises is raised."""
        entry = self._entry
        pending = AsyncRun()
        try:
            token = entry.take()
        except IndexError:
            entry.refuse()
        tickets = [token]  # who pops it has the run, whatever interrupts the other
        try:
            entry.owner = threading.get_ident()
            make_ready()
            self._worker = worker = self._worker or Worker(f"{entry.name} run_async")
            entry.pending = pending
            entry.owner = NOBODY  # until the worker has begun
            started = threading.Event()
            action = carried(partial(execute, started.set))
            worker.submit(partial(self._finish, pending, tickets, action, started))
            if entry.shares:  # what is called next comes after it
                started.wait()
        except BaseException as error:
            self._take_back(pending, tickets, error)
            raise_exhaustion(error, "a run began")
            raise
        return pending

    def _take_back(self, pending: AsyncRun, tickets: list[LockToken], error: BaseException) -> None:
        """Give up a run that the worker has not begun."""
        try:
            token = tickets.pop()
        except IndexError:
            return
        self._entry.pending = None
        self._entry.owner = NOBODY
        self._entry.give_back(token)
        pending.complete(error)

    def _finish(
        self, pending: AsyncRun, tickets: list[LockToken], execute: Callable[[], object], started: threading.Event
    ) -> None:
        """In the worker: execute with the lock that ``start`` took, and give it back."""
        try:
            token = tickets.pop()
        except IndexError:
            return
        error: BaseException | None = None
        try:
            self._entry.owner = threading.get_ident()
            with reports_exhaustion("a run was under way"):
                execute()
        except BaseException as raised:
            error = raised
        finally:
            self._entry.pending = None
            self._entry.owner = NOBODY
            self._entry.give_back(token)
            pending.complete(error)
            started.set()
