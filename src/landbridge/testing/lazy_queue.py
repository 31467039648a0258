"""Queued work that runs as late as legal: nothing happens before a caller waits, then in a seeded random order."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from random import Random
from threading import Condition
from typing import Any

from landbridge.errors import DeviceLostError
from landbridge.process.locks import new_lock

#: Longest sleep of a wait, in seconds, so that Ctrl-C is answered.
_SLICE = 0.05


class Task:
    """One entry of a queue, and the Event of everything before and at it.

    ``uses`` are the (block, start, stop, writes) it touches; ``writes`` None means that what a kernel does from
    ``start`` on is not known, and may be anything. ``keep_alive`` is held until it is done. ``ready``: it may not run
    before this returns True. ``begun``: a finalizer that runs in this thread during it finds it started and need not
    wait for it.
    """

    __slots__ = (
        "_queue",
        "action",
        "after",
        "begun",
        "done",
        "finished_ms",
        "held",
        "keep_alive",
        "ready",
        "stream",
        "subject",
        "uses",
    )

    def __init__(
        self,
        queue: LazyQueue,
        stream: Hashable,
        subject: str,
        action: Callable[[], None] | None,
        uses: tuple[tuple[Any, int, int, bool | None], ...],
        keep_alive: object,
    ) -> None:
        self._queue = queue
        self.stream = stream
        self.subject = subject
        self.action = action
        self.uses = uses
        self.keep_alive = keep_alive
        self.after: list[Task] = []
        self.begun = self.done = False
        self.held = False
        self.ready: Callable[[], bool] | None = None
        self.finished_ms: float | None = None

    def may_run(self) -> bool:
        """Returns whether nothing holds it, and all that must come first has begun."""
        return not self.held and all(b.begun for b in self.after) and (self.ready is None or self.ready())

    def query(self) -> bool:
        """Returns whether it is done; each call also runs one task of the queue, so that polling ends."""
        return self._queue.poll(self)

    def synchronize(self, timeout: float | None = None) -> bool:
        """Runs what must come first, then this task; returns False when ``timeout`` seconds pass before held work
        allows it.
        """
        return self._queue.finish((self,), timeout)


class LazyQueue:
    """The tasks of one device instance on all its streams; ``rng`` chooses among those that may run.

    A task runs after the one before it on its stream and after the tasks it waits for; nothing else orders them. Every
    method may be called from any thread.
    """

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        # An interrupt cannot split a lock's own ``with``; it can split that of a Condition, which is Python code.
        self._lock = new_lock()
        self._changed = Condition(self._lock)
        self._pending: list[Task] = []
        self._last: dict[Hashable, Task] = {}
        self.last_submitted = "nothing"
        self.lost = False

    def submit(
        self,
        stream: Hashable,
        subject: str,
        action: Callable[[], None] | None = None,
        *,
        uses: tuple[tuple[Any, int, int, bool | None], ...] = (),
        after: tuple[Task, ...] = (),
        keep_alive: object = None,
        held: bool = False,
        ready: Callable[[], bool] | None = None,
    ) -> Task:
        """Appends a task to ``stream``, to run after ``after`` too; one that is ``held`` waits for ``release``, and any
        until ``ready`` returns True.
        """
        with self._lock:
            self.check()
            task = Task(self, stream, subject, action, uses, keep_alive)
            before = self._last.get(stream)
            task.after = [t for t in (*after, *([before] if before else [])) if not t.done]
            task.held, task.ready = held, ready
            self._pending.append(task)
            self._last[stream] = task
            self.last_submitted = subject
            return task

    def release(self, task: Task) -> None:
        """Lets a held task run."""
        with self._lock:
            task.held = False
            self._changed.notify_all()

    def poll(self, task: Task) -> bool:
        """Returns whether ``task`` is done; then runs any one task that may run."""
        with self._lock:
            self.check()
            done = task.done
            ready = [t for t in self._pending if t.may_run()]
            if ready and not done:
                self._run(self._rng.choice(ready))
            return done

    def finish(self, tasks: tuple[Task, ...], timeout: float | None = None) -> bool:
        """Runs ``tasks`` and what they wait for, in random order, sometimes with others that may run too.

        Returns False when ``timeout`` seconds pass first; at least one of them runs, so that repeated waits end.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._lock:
                self.check()
                needed = _closure(tasks)
                if not needed:
                    return True
                pool = self._pending if self._rng.random() < 0.25 else needed
                ready = [t for t in pool if t.may_run()]
                if ready:
                    self._run(self._rng.choice(ready))
                elif not self._may_run(tasks):
                    # Other threads release held tasks; short sleeps keep the wait interruptible.
                    left = _SLICE if deadline is None else min(_SLICE, deadline - time.monotonic())
                    if left <= 0:
                        return False
                    self._changed.wait(left)
                if deadline is not None and time.monotonic() >= deadline:
                    return not _closure(tasks)

    def is_idle(self) -> bool:
        """Returns whether nothing is queued."""
        with self._lock:
            return not self._pending

    def finish_stream(self, stream: Hashable) -> None:
        """Runs everything that is queued on ``stream``."""
        if (last := self._last.get(stream)) is not None:
            self.finish((last,))

    def finish_all(self, timeout: float | None = None) -> None:
        """Runs everything that is queued; waits for held work at most ``timeout`` seconds."""
        with self._lock:
            tasks = tuple(self._pending)
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.finish(tasks, timeout) and deadline is not None:
            with self._lock:
                if not self._may_run(tasks) and time.monotonic() >= deadline:
                    return

    def _may_run(self, tasks: tuple[Task, ...]) -> bool:
        """Returns whether one of ``tasks``, or of what they wait for, runs as soon as somebody waits."""
        return any(t.may_run() for t in _closure(tasks))

    def last(self, stream: Hashable) -> Task | None:
        """Returns the task submitted last to ``stream``."""
        return self._last.get(stream)

    def touching(
        self, block: object, start: int, stop: int, *, writes: bool, is_known: bool = False
    ) -> tuple[Task, ...]:
        """Returns the pending tasks that an access of bytes ``start`` to ``stop`` of ``block`` conflicts with.

        ``is_known``: for certain.
        """
        with self._lock:
            return tuple(
                task
                for task in self._pending
                if any(
                    b is block
                    and (w is not False or writes)
                    and s < stop
                    and start < e
                    and not (is_known and w is None)
                    for b, s, e, w in task.uses
                )
            )

    def lose(self) -> None:
        """Drops pending tasks; from now on every call raises."""
        with self._lock:
            self.lost = True
            for task in self._pending:
                task.keep_alive = task.action = None
            self._pending.clear()
            self._changed.notify_all()

    def check(self) -> None:
        """Raises DeviceLostError once the device is lost."""
        if self.lost:
            raise DeviceLostError(
                f"the simulated device was lost; the work submitted last was: {self.last_submitted}; "
                "reopen the device and make new tensors, the old ones stay lost"
            )

    def _run(self, task: Task) -> None:
        if task.begun:  # by a finalizer, since it was chosen
            return
        task.begun = True
        self._pending.remove(task)
        if self._last.get(task.stream) is task:
            del self._last[task.stream]
        try:
            if task.action is not None:
                task.action()
        finally:
            task.finished_ms = time.perf_counter() * 1e3
            task.done = True
            # The tasks waited for, and borrowed objects, are released: an Event may outlive both.
            task.action = task.keep_alive = task.ready = None
            task.after, task.uses = [], ()
            self._changed.notify_all()


def _closure(tasks: tuple[Task, ...]) -> list[Task]:
    """Returns the tasks not begun yet among ``tasks`` and everything they wait for."""
    found: dict[Task, None] = {}
    todo = [task for task in tasks if not task.begun]
    while todo:
        task = todo.pop()
        if task not in found:
            found[task] = None
            todo += [before for before in task.after if not before.begun]
    return list(found)
