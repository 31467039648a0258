"""Turns: one thread at a time, in a form that no interrupt can split.

A lock whose owner is interrupted between the call that took it and the ``try`` that gives it back stays taken for
ever. A turn is an object instead, and whoever refers to it has it: one that an exception drops comes back by itself.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_NAP = 1e-3


class _Free(list["Turn"]):
    """The turn, while nobody has it."""

    __slots__ = ("__weakref__",)


class Turn:
    """The right to go on; give it back, or drop it."""

    __slots__ = ("of",)

    def __init__(self, of: weakref.ref[_Free]) -> None:
        self.of = of

    def __del__(self) -> None:
        free = self.of()
        if free is not None:
            free.append(type(self)(self.of))


class Turns:
    """What threads take turns at. ``take`` raises IndexError while another one has the turn.

    ``try: ... finally: turns.give_back(turn)`` is to follow ``turn = turns.take()`` at once.
    """

    __slots__ = ("__weakref__", "_kept", "free", "give_back", "take")

    def __init__(self) -> None:
        #: Empty while somebody has the turn.
        self.free = _Free()
        self.free.append(Turn(weakref.ref(self.free)))
        # Methods of a list: a thread switch or an interrupt comes before or after them.
        self.take: Callable[[], Turn] = self.free.pop
        self.give_back: Callable[[Turn], None] = self.free.append
        self._kept: Turn | None = None

    @contextmanager
    def waited_for(self) -> Iterator[None]:
        """Have the turn in a block, however long others have it before."""
        while True:
            try:
                turn = self.take()
                break
            except IndexError:
                time.sleep(_NAP)
        try:
            yield
        finally:
            self.give_back(turn)

    def take_for_good(self, timeout: float) -> bool:
        """Have the turn and never give it back; False when it is not to be had within ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                self._kept = self.take()
                return True
            except IndexError:
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_NAP)
