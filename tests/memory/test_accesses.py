"""Views and queued work of one Storage, from several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import landbridge as lb
from landbridge.errors import HostAccessError
from landbridge.memory.accesses import Access, open_views
from landbridge.memory.allocators.base import QueuedUse
from landbridge.memory.storage import Storage


def in_another_thread(action: Callable[[], object], seconds: float | None = None) -> threading.Thread:
    """Do ``action`` there, and go on when it is done or stuck for so long."""
    thread = threading.Thread(target=action)
    thread.start()
    thread.join(seconds)
    return thread


class Work:
    """An event that does ``during`` when it is asked whether it is over."""

    def __init__(self, during: Callable[[], object] = lambda: None, over: bool = True) -> None:
        self._during, self.over, self.waited = during, over, False

    def query(self) -> bool:
        self._during()
        return self.over

    def synchronize(self, timeout: float | None = None) -> bool:
        self.waited = self.over = True
        return True


@pytest.fixture
def storage() -> Storage:
    return lb.empty((64,), dtype="uint8").storage


def whole(storage: Storage) -> Access:
    return Access(0, storage.nbytes, True, "a test")


@pytest.mark.parametrize("meet", ["wait", "queue"])
def test_what_another_thread_queues_concurrently_is_not_forgotten(storage: Storage, meet: str) -> None:
    late = Work(over=False)
    started: list[bool] = []

    def during() -> None:
        if not started:
            started.append(True)
            in_another_thread(lambda: storage.queue(whole(storage), QueuedUse(late)))

    storage.queue(whole(storage), QueuedUse(Work(during)))
    if meet == "wait":
        storage.wait(0, 64, writes=True)
    else:
        storage.queue(whole(storage), QueuedUse(Work()))
    assert started and not late.waited
    storage.wait(0, 64, writes=True)
    assert late.waited and not storage.has_queued


class Looked(Access):
    """An open view that does ``during`` when another one is compared with it."""

    during: Callable[[], object]

    def refuse(self, start: int, stop: int, writes: bool, subject: str) -> None:
        during, type(self).during = type(self).during, lambda: None
        during()
        super().refuse(start, stop, writes, subject)


def test_of_two_conflicting_views_one_opens(storage: Storage) -> None:
    first, second = Access(0, 32, True, "the first"), Access(0, 32, True, "the second")
    outcome: list[object] = []

    def open_second() -> None:
        try:
            storage.open_view(second)
        except HostAccessError as error:
            outcome.append(error)
        else:
            outcome.append(second)

    threads: list[threading.Thread] = []
    Looked.during = lambda: threads.append(in_another_thread(open_second, seconds=0.1))
    separate = Looked(32, 64, True, "a view of other bytes")
    storage.open_view(separate)
    storage.open_view(first)
    threads[0].join()
    assert isinstance(outcome[0], HostAccessError)
    for view in (first, separate):
        open_views.pop(view)
