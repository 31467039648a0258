"""Background runs: the handle of one, and the thread that a Session starts for its first one.

Workers are daemon threads. They end with their Session, and at exit before any code or memory goes away.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from landbridge.device.fence import Fence
from landbridge.device.waits import Waits
from landbridge.errors import ForkedDeviceError, InputError, RunTimeoutError
from landbridge.process.background_threads import start
from landbridge.process.exhaustion import reports_exhaustion
from landbridge.process.locks import new_lock
from landbridge.process.process_bound import ProcessBound
from landbridge.vm.completion import Completion

if TYPE_CHECKING:
    from queue import SimpleQueue

#: Seconds that exit waits for one idle worker to end; the system ends one that is in a run.
_EXIT_PATIENCE = 0.2


class AsyncRun(ProcessBound):
    """A run that ``Session.run_async`` started; it keeps everything the run uses alive until it is done."""

    _instead: ClassVar[str] = "wait for it, and pickle its outputs"

    def __init__(self) -> None:
        self._completed = Completion()
        self._error: BaseException | None = None
        self._limit: float | None = None
        self._waits: Waits | None = None
        self._fence: Fence | None = None
        self._lock = new_lock()

    @reports_exhaustion("a fence of a run was made")
    def fence(self) -> Fence:
        """Returns a Fence, an eventfd, that is signalled when the run is over, with or without an error.

        It is a file that others poll, also in other processes. The kernel's own users of sync files, as displays are,
        take one of a device: ``landbridge.device.fences.fence_of``.
        """
        with self._lock:
            if self._fence is None:
                self._fence = Fence.owning(os.eventfd(int(self._completed.is_set()), os.EFD_CLOEXEC))
            return Fence(self._fence)

    def limit(self, seconds: float, waits: Waits) -> None:
        """Set the limit of ``wait`` without a timeout to ``seconds``; ``waits`` say what it waits for. For the
        Session.
        """
        self._limit, self._waits = seconds, waits

    def done(self) -> bool:
        """Returns whether the run is over, with or without an error; its fence is signalled then."""
        with self._lock:
            return self._completed.is_set()

    def wait(self, timeout: float | None = None) -> None:
        """Wait at most ``timeout`` seconds for the run; Ctrl-C ends only the wait.

        None is the ``time_limit`` of the Session, or no limit. Raises RunTimeoutError when the run is not over by then:
        it goes on, and can be waited for again. Raises what the run raised, for instance the exception of a host
        builtin, each time.
        """
        if timeout is not None and not timeout >= 0:
            raise InputError(f"timeout is {timeout!r}; legal: None, or seconds from 0")
        limit, source = (timeout, "") if timeout is not None else (self._limit, " (time_limit= of the Session)")
        if not self._completed.wait(limit):
            why = "" if self._waits is None else f": it waits for {self._waits}"
            raise RunTimeoutError(
                f"the run is not over after {limit} s{source} and goes on{why}; wait again, or longer"
            )
        with self._lock:  # until the fence is signalled, too
            pass
        if self._error is not None:
            raise self._error

    def complete(self, error: BaseException | None) -> None:
        """Mark the run as over. For the Session."""
        self._error = error
        with self._lock:
            self._completed.set()
            if self._fence is not None:
                os.eventfd_write(self._fence.fileno(), 1)

    def leave_behind(self) -> None:
        """Mark the run, in a child process, as the parent's. For the Session."""
        self._completed = Completion()  # threads of the parent may have held its lock
        self._lock, self._fence = new_lock(), None  # the file is the parent's too
        self.complete(ForkedDeviceError("this run is of the parent process; make a new Session in the child"))

    def __repr__(self) -> str:
        return f"AsyncRun({'done' if self.done() else 'in flight'})"


class Worker:
    """A daemon thread that does tasks in order until it is closed or collected."""

    def __init__(self, name: str) -> None:
        from queue import SimpleQueue

        tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._tasks = tasks
        self._thread = threading.Thread(target=_work, args=(tasks,), name=name, daemon=True)
        weakref.finalize(self, tasks.put, None).atexit = False
        _workers.add(self)
        start(self._thread)

    def submit(self, task: Callable[[], None]) -> None:
        """Queue ``task``, which must not raise, after the earlier ones."""
        self._tasks.put(task)

    def close(self, timeout: float | None = None) -> None:
        """End the thread after its queued tasks, and wait for that at most ``timeout`` seconds."""
        self._tasks.put(None)
        if self._thread.ident is not None:  # else an interrupt came before its start
            self._thread.join(timeout)


def _work(tasks: SimpleQueue[Callable[[], None] | None]) -> None:
    while (task := tasks.get()) is not None:
        task()
        del task  # an idle worker keeps nobody's memory alive


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


def _join_workers() -> None:
    for worker in list(_workers):
        worker.close(_EXIT_PATIENCE)


atexit.register(_join_workers)
os.register_at_fork(after_in_child=_workers.clear)
