"""The card's one queue: a thread that does one thing after another, and the events of it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


class QueuedEvent:
    """Set when its work is done; an error of the work is raised to whoever waits."""

    def __init__(self, work: Callable[[], None], keep_alive: object) -> None:
        self._work: Callable[[], None] | None = work
        self._keep_alive = keep_alive
        self._done = threading.Event()
        self._error: Exception | None = None

    def run(self) -> None:
        """Do the work."""
        try:
            if self._work is not None:
                self._work()
        except Exception as error:
            self._error = error
        self._work = self._keep_alive = None
        self._done.set()

    def query(self) -> bool:
        """Whether it is done."""
        if self._done.is_set() and self._error is not None:
            raise self._error
        return self._done.is_set()

    def synchronize(self, timeout: float | None = None) -> bool:
        """Wait at most ``timeout`` seconds; whether it is done."""
        self._done.wait(timeout)
        return self.query()


class Queue:
    """In order, on a thread of its own."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[QueuedEvent] = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="edu", daemon=True).start()

    def submit(self, work: Callable[[], None], keep_alive: object = None) -> QueuedEvent:
        """Have ``work`` done after all that was submitted before."""
        event = QueuedEvent(work, keep_alive)
        self._tasks.put(event)
        return event

    def _serve(self) -> None:
        while True:
            self._tasks.get().run()
