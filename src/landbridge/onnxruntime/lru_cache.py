"""A least-recently-used cache whose values are made when they are first needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from landbridge.process.locks import new_lock

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class Retained(Generic[_K, _V]):
    """Holds at most ``limit`` values and drops the least recently used one; any number of threads may use it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[_K, _V] = OrderedDict()
        self._lock = new_lock()

    def get(self, key: _K, make: Callable[[], _V], on_drop: Callable[[], object]) -> _V:
        """Returns the value of ``key``, made by ``make`` where there is none; two threads at once may both make one.

        ``on_drop`` is called when another value is dropped for it.
        """
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        created = make()
        with self._lock:
            value = self._values.setdefault(key, created)
            self._values.move_to_end(key)
            is_full = len(self._values) > self._limit
            if is_full:
                self._values.popitem(last=False)
        if is_full:
            on_drop()
        return value
