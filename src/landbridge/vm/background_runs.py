"""BackgroundRuns: runs of a Session in the background, whose worker releases the lock that ``run_async`` took."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from landbridge.device.stream import carried
from landbridge.process.exhaustion import raise_exhaustion, reports_exhaustion
from landbridge.vm.background import AsyncRun, Worker
from landbridge.vm.completion import Completion
from landbridge.vm.entry import Entry
from landbridge.vm.token_lock import NOBODY, LockToken

#: A function that executes what is bound and calls back once no later work can come before it.
ExecuteAndTell = Callable[[Callable[[], object]], object]


class BackgroundRuns:
    """Starts runs one at a time, with the lock of ``entry``, in a thread that is made for the first one."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._worker: Worker | None = None

    def start(self, make_ready: Callable[[], object], execute: ExecuteAndTell) -> AsyncRun:
        """Take the lock, call ``make_ready`` here, whose exceptions are raised, then call ``execute`` in the worker."""
        entry = self._entry
        pending = AsyncRun()
        try:
            token = entry.take()
        except IndexError:
            entry.refuse()
        tickets = [token]  # whoever pops the ticket has the run, whatever interrupts the other
        del token
        try:
            entry.owner = threading.get_ident()
            make_ready()
            self._worker = worker = self._worker or Worker(f"{entry.name} run_async")
            entry.pending = pending
            entry.owner = NOBODY  # until the worker has begun
            started = Completion()
            action = carried(partial(execute, started.set))
            worker.submit(partial(self._finish, pending, tickets, action, started))
            if entry.shares:  # work that is called next comes after it
                started.wait()
        except BaseException as error:
            self._take_back(pending, tickets, error)
            raise_exhaustion(error, "a run began")
            raise
        return pending

    def _take_back(self, pending: AsyncRun, tickets: list[LockToken], error: BaseException) -> None:
        """Withdraw a run that the worker has not begun."""
        try:
            token = tickets.pop()
        except IndexError:
            return
        self._entry.pending = None
        self._entry.owner = NOBODY
        self._entry.give_back(token)
        del token
        pending.complete(error)

    def _finish(
        self, pending: AsyncRun, tickets: list[LockToken], execute: Callable[[], object], started: Completion
    ) -> None:
        """Execute in the worker, with the lock that ``start`` took, and release it."""
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
            del token
            pending.complete(error)
            started.set()
