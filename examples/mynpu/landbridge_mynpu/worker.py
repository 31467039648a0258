"""The queue of mynpu: what is submitted is done in order, later, by one thread."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Lock, Thread

from landbridge.errors import DeviceError


class Ticket:
    """A point in the queue: done when what it stands for, and all before it, is. It is the Event of the contract.

    ``keep_alive`` is held until then.
    """

    def __init__(self, subject: str, work: Callable[[], object], keep_alive: object) -> None:
        self.subject = subject
        self._work: Callable[[], object] | None = work
        self._keep_alive = keep_alive
        self._done = Event()
        self._failure: Exception | None = None

    def do(self) -> None:
        """On the worker's thread: do the work, and keep what it raises for who waits."""
        try:
            assert self._work is not None
            self._work()
        except Exception as error:
            self._failure = error
        self._work = self._keep_alive = None
        self._done.set()

    def query(self) -> bool:
        """Whether it is done."""
        return self._done.is_set()

    def synchronize(self, timeout: float | None = None) -> bool:
        """Wait at most ``timeout`` seconds; whether it is done. Raises DeviceError when the work failed."""
        done = self._done.wait(timeout)
        if self._failure is not None:
            raise DeviceError(f"mynpu: {self.subject} failed: {self._failure}") from self._failure
        return done


class Worker:
    """One thread, started with the first work; it ends with the process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[Ticket] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None

    def submit(self, subject: str, work: Callable[[], object], keep_alive: object = None) -> Ticket:
        """Queue ``work``, which errors call ``subject``."""
        ticket = Ticket(subject, work, keep_alive)
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._queue.put(ticket)
        return ticket

    def _run(self) -> None:
        while True:
            self._queue.get().do()
