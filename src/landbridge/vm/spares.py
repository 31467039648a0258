"""Spares: a pool of further instances of what one thread at a time may use, for calls that come while it is used."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from landbridge.process.locks import cached_property, new_lock

_T = TypeVar("_T")

#: Seconds after which a waiting thread checks again, in case an interrupt dropped an instance.
_LOOK_AGAIN = 0.05


class Spares(Generic[_T]):
    """A pool of at most ``most()`` objects that ``make`` makes, one for each caller; when all are used, callers wait.

    ``most`` is called once, before the first is made.
    """

    def __init__(self, make: Callable[[], _T], most: Callable[[], int]) -> None:
        self._make = make
        self._ask_most = most
        self._free: list[_T] = []
        self._alive: weakref.WeakSet[_T] = weakref.WeakSet()
        self._making = self._forgotten = 0
        self._changed = threading.Condition(new_lock())

    @cached_property
    def _most(self) -> int:
        return max(1, self._ask_most())

    def take(self) -> _T:
        """Returns an instance that nobody uses, which the caller gives back. Raises what making one raises."""
        with self._changed:
            while True:
                if self._free:
                    return self._free.pop()
                if len(self._alive) + self._making < self._most:
                    self._making += 1
                    forgotten = self._forgotten
                    break
                self._changed.wait(_LOOK_AGAIN)
        try:
            created = self._make()
            with self._changed:
                if forgotten == self._forgotten:  # else it may have been made of what was before
                    self._alive.add(created)
            return created
        finally:
            with self._changed:
                self._making -= 1
                self._changed.notify()

    def give_back(self, spare: _T) -> None:
        """Returns ``spare`` to the pool, unless it was forgotten meanwhile."""
        with self._changed:
            if spare in self._alive:
                self._free.append(spare)
                self._changed.notify()

    def forget(self) -> None:
        """Forget all instances made so far: the next ones are made anew."""
        with self._changed:
            self._forgotten += 1
            self._free.clear()
            self._alive = weakref.WeakSet()
            self._changed.notify_all()

    def __len__(self) -> int:
        """Returns the number of instances."""
        return len(self._alive)
