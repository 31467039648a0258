"""Values that are made when they are first asked for, and of which the last ones used stay."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from landbridge.locks import new_lock

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class Retained(Generic[_K, _V]):
    """``limit`` values at most; the one that was not used for longest goes. For any number of threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[_K, _V] = OrderedDict()
        self._lock = new_lock()

    def get(self, key: _K, make: Callable[[], _V], on_drop: Callable[[], object]) -> _V:
        """The value of ``key``, which ``make`` makes where there is none; two threads at once may make two of it.

        ``on_drop`` is called where another one goes for it.
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
