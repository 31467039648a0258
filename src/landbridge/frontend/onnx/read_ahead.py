"""Large weights, read from the model's file before the import asks for them, while it does other things."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Condition
from typing import Any

import numpy as np

from landbridge.background_threads import begin
from landbridge.locks import new_lock

Array = np.ndarray[Any, Any]

#: Bytes that are read at most before they are asked for.
_AHEAD = 32 << 20


class ReadAhead:
    """Arrays that ``read`` reads by name: those of ``sizes``, in bytes, in this order before they are asked for."""

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
        """The array ``name``, which is the caller's; raises what ``read`` raises."""
        with self._changed:
            self._left.pop(name, None)
            self._changed.wait_for(lambda: self._reading != name)
            found = self._there.pop(name, None)
            self._go_on()
        return self._read(name) if found is None else found

    def _go_on(self) -> None:
        """Have a thread read what comes next, if there is none, and room for much: none waits for room, as a model may
        be left at any time."""
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
            finally:  # who asks for it reads it then, and is told what is wrong
                with self._changed:
                    if found is not None:
                        self._there[name] = found
                    self._reading = ""
                    self._changed.notify_all()
