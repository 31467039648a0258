"""The lock of a Session: one use at a time, given back whatever happens."""

from __future__ import annotations

import gc
import inspect
import threading

import pytest

from landbridge.errors import SessionBusyError
from landbridge.vm.entry import Entry, takes_lock
from landbridge.vm.token_lock import NOBODY


class Counter:
    """Something of which one thread at a time may use each method."""

    def __init__(self) -> None:
        self._entry = Entry("a counter")
        self.total = 0

    @takes_lock
    def add(self, first: int, *, second: int = 0) -> int:
        """Add both; raises ValueError for 0."""
        assert not self._entry.free
        if not first + second:
            raise ValueError("nothing to add")
        self.total += first + second
        return self.total

    @takes_lock
    def add_within(self) -> int:
        return self.add(1)


def test_arguments_and_result_pass_through() -> None:
    counter = Counter()
    assert (counter.add(1), counter.add(2, second=3), counter.add(first=4)) == (1, 6, 10)
    assert str(inspect.signature(Counter.add)) == "(self, first: 'int', *, second: 'int' = 0) -> 'int'"
    assert Counter.add.__doc__ == "Add both; raises ValueError for 0."


def test_the_lock_is_released_after_an_error() -> None:
    counter = Counter()
    with pytest.raises(ValueError, match="nothing to add"):
        counter.add(0)
    assert len(counter._entry.free) == 1
    assert counter.add(1) == 1


def test_a_use_within_a_use_is_refused() -> None:
    counter = Counter()
    with pytest.raises(SessionBusyError):
        counter.add_within()
    assert counter.add(1) == 1


def test_another_thread_is_refused_concurrently() -> None:
    counter = Counter()
    token = counter._entry.take()
    refused: list[BaseException] = []

    def use() -> None:
        try:
            counter.add(1)
        except SessionBusyError as error:
            refused.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join(30)
    counter._entry.give_back(token)
    assert len(refused) == 1
    assert counter.add(1) == 1


def test_the_owner_is_the_thread_that_has_the_turn() -> None:
    counter = Counter()
    entry = counter._entry
    seen: list[tuple[int, bool]] = []

    def use() -> None:
        token = entry.take()
        try:
            entry.owner = threading.get_ident()
            seen.append((entry.owner, entry.is_used_elsewhere()))
        finally:
            entry.owner = NOBODY
            entry.give_back(token)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join(30)
    assert seen == [(thread.ident, False)]
    assert entry.owner == NOBODY


def test_a_turn_that_is_dropped_has_no_owner() -> None:
    entry = Counter()._entry
    token = entry.take()
    entry.owner = threading.get_ident()
    assert not entry.is_used_elsewhere()
    del token  # as by an exception that comes before the lock is given back
    assert len(entry.free) == 1
    again = entry.take()
    assert entry.is_used_elsewhere()  # nobody has said yet that it is theirs
    entry.give_back(again)


def test_a_token_that_a_collection_frees_comes_back() -> None:
    """An exception whose frames had the token may be part of a cycle."""
    entry = Entry("session")
    cycle: list[object] = [entry.take()]
    entry.owner = threading.get_ident()
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert entry.owner == NOBODY and len(entry.free) == 1
    entry.give_back(entry.take())


def test_a_kept_error_does_not_keep_the_lock() -> None:
    counter = Counter()
    with pytest.raises(ValueError, match="nothing to add") as kept:
        counter.add(0)
    token = counter._entry.take()
    del token  # as by an interrupt before the lock is given back
    assert counter.add(1) == 1
    assert kept.value.__traceback__ is not None
