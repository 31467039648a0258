"""TokenLock: a lock for one thread at a time, in a form that no interrupt can split.

A lock whose owner is interrupted between the call that took it and the ``try`` that releases it stays taken for ever.
Here a token, an object, stands for the lock, and whoever refers to the token holds the lock: a token that an exception
drops comes back by itself.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident

_NAP = 1e-3
#: A value that is no thread's identifier; it is not 0.
NOBODY = 0


class LockToken:
    """A token for the lock that its owner holds; give it back, or drop it."""

    __slots__ = ("_lock",)

    def __init__(self, lock: weakref.ref[TokenLock]) -> None:
        self._lock = lock

    def __del__(self) -> None:
        lock = self._lock()
        if lock is not None:
            lock.owner = NOBODY
            lock.free.append(type(self)(self._lock))


class TokenLock:
    """A lock for one thread at a time. ``take`` returns its token, and raises IndexError while another owner has it.

    Whoever takes the lock sets ``owner`` to the identifier of its thread first thing, and back to ``NOBODY`` last
    thing:

        token = lock.take()
        try:
            lock.owner = get_ident()
            ...
        finally:
            lock.owner = NOBODY
            lock.give_back(token)
            del token  # else a traceback that somebody keeps holds it, and it could not come back by itself later
    """

    __slots__ = ("__weakref__", "_reference", "_retained", "free", "give_back", "owner", "take")

    def __init__(self) -> None:
        #: The thread that holds the lock; ``NOBODY`` for a moment after it was taken and before it is given back, too.
        self.owner = NOBODY
        #: Empty while somebody holds the lock.
        self.free: list[LockToken] = []
        # Held here, too: a collection that finds a token in a cycle clears weak references that only the cycle holds,
        # and that before it calls ``__del__``.
        self._reference = weakref.ref(self)
        self.free.append(LockToken(self._reference))
        # Methods of a list: a thread switch or an interrupt comes before or after them.
        self.take: Callable[[], LockToken] = self.free.pop
        self.give_back: Callable[[LockToken], None] = self.free.append
        self._retained: LockToken | None = None

    @contextmanager
    def waited_for(self) -> Iterator[None]:
        """Hold the lock in a block, after waiting until its owner gives it back, however soon that takes it again.

        Where this thread is the owner, it holds the lock already.
        """
        if self.owner == get_ident():
            yield
            return
        token = self._wait()
        try:
            self.owner = get_ident()
            yield
        finally:
            self.owner = NOBODY
            self.give_back(token)
            del token

    def _wait(self) -> LockToken:
        given: list[LockToken] = []  # by the owner; what comes later, and what an interrupt drops, comes back by itself
        try:
            while True:
                try:
                    return self.take()
                except IndexError:
                    self.give_back = given.append
                time.sleep(_NAP)
                if given:
                    return given.pop()
        finally:
            self.give_back = self.free.append

    def take_for_good(self, timeout: float) -> bool:
        """Take the lock and never give it back, once for all who ask; returns False where it could not be taken within
        ``timeout`` seconds.
        """
        if self._retained is not None:
            return True
        deadline = time.monotonic() + timeout
        while True:
            try:
                self._retained = self.take()
                return True
            except IndexError:
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_NAP)
