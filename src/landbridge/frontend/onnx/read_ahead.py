"""Reads large weights from the model's file on a thread, before the import needs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Condition
from typing import Any

import numpy as np

from landbridge.process.background_threads import begin
from landbridge.process.locks import new_lock

Array = np.ndarray[Any, Any]

#: The most bytes that are read in advance.
_AHEAD = 32 << 20


class ReadAhead:
    """Arrays that ``read`` reads by name; those of ``sizes``, in bytes, are read in advance in this order."""

    def __init__(self, read: Callable[[str], Array], sizes: Mapping[str, int]) -> None:
        self._read = read
        self._changed = Condition(new_lock())
        self._left = dict(sizes)
        self._sizes = sizes
        self._there: dict[str, Array] = {}
        self._reading = ""
        self._is_begun = False
        self._go_on()

    def get(self, name: str) -> Array:
        """Returns the array ``name``, which the caller then owns; raises what ``read`` raises."""
        with self._changed:
            self._left.pop(name, None)
            self._changed.wait_for(lambda: self._reading != name)
            found = self._there.pop(name, None)
            self._go_on()
        return self._read(name) if found is None else found

    def _go_on(self) -> None:
        """Start a thread for the next array if none is running and there is capacity.

        No thread waits for capacity, because the import may end at any time.
        """
        if self._left and not self._is_begun and 2 * self._waiting() <= _AHEAD:
            self._is_begun = True
            begin(self._work, "read ahead")

    def _waiting(self) -> int:
        return sum(array.nbytes for array in self._there.values())

    def _work(self) -> None:
        while True:
            with self._changed:
                name = next(iter(self._left), None)
                if name is None or self._waiting() + self._sizes[name] > _AHEAD:
                    self._is_begun = False
                    return
                del self._left[name]
                self._reading = name
            found = None
            try:
                found = self._read(name)
            finally:  # get() reads it again, and raises the error
                with self._changed:
                    if found is not None:
                        self._there[name] = found
                    self._reading = ""
                    self._changed.notify_all()
