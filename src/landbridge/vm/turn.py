"""Turns: one thread at a time, in a form that no interrupt can split.

A lock whose owner is interrupted between the call that took it and the ``try`` that gives it back stays taken for
ever. A turn is an object instead, and whoever refers to it has it: one that an exception drops comes back by itself.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident

_NAP = 1e-3
#: What no thread has as its identifier, which is not 0.
NOBODY = 0


class Turn:
    """The right to go on; give it back, or drop it."""

    __slots__ = ("_lock",)

    def __init__(self, lock: weakref.ref[Turns]) -> None:
        self._lock = lock

    def __del__(self) -> None:
        lock = self._lock()
        if lock is not None:
            lock.owner = NOBODY
            lock.free.append(type(self)(self._lock))


class Turns:
    """What threads take turns at. ``take`` raises IndexError while another one has the turn.

    Whoever takes the turn says so first thing, and takes it back last thing, as ``owner``, which is the identifier of
    the thread that has it:

        turn = turns.take()
        try:
            turns.owner = get_ident()
            ...
        finally:
            turns.owner = NOBODY
            turns.give_back(turn)
    """

    __slots__ = ("__weakref__", "_kept", "free", "give_back", "owner", "take")

    def __init__(self) -> None:
        #: The thread that has the turn; ``NOBODY`` for a moment after it was taken and before it is given back, too.
        self.owner = NOBODY
        #: Empty while somebody has the turn.
        self.free: list[Turn] = []
        self.free.append(Turn(weakref.ref(self)))
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
            self.owner = get_ident()
            yield
        finally:
            self.owner = NOBODY
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
