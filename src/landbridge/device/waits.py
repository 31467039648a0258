"""Waits: a record of what a use of a Session waits for, which the error of a time limit names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Waits:
    """The device calls and waits that the threads of one use are in now, the innermost last.

    Their words are joined to text only on request: few uses exceed their limit.
    """

    __slots__ = ("_now",)

    def __init__(self) -> None:
        self._now: list[tuple[object, ...]] = []

    @contextmanager
    def inside(self, *words: object) -> Iterator[None]:
        """Record ``words`` as what the thread waits for, until the ``with`` ends."""
        self._now.append(words)
        try:
            yield
        finally:
            self._now.remove(words)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Record this thread's waits here until the ``with`` ends."""
        before = _watched.set(self)
        try:
            yield
        finally:
            _watched.reset(before)

    def __str__(self) -> str:
        now = self._now[-1:]
        if not now:
            return "no device: it computes, or a host function or another Session has not returned"
        return " ".join(map(str, now[0]))


_watched: ContextVar[Waits | None] = ContextVar("waits", default=None)


def waits_of_thread() -> Waits | None:
    """Returns the record of this thread's waits; None where none is kept."""
    return _watched.get()
