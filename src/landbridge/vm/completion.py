"""Completion: says once that something is over, to threads that an interrupt may hit while they wait."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from queue import SimpleQueue

#: Seconds after which a thread looks again: an interrupt may have hit one that had to pass on what wakes the next.
_LOOK_AGAIN = 1.0


class Completion:
    """A threading.Event that is set once. An interrupt within that one's ``wait`` may leave its lock taken, and ``set``
    then waits forever; here only code in C waits.
    """

    def __init__(self) -> None:
        from queue import SimpleQueue

        self._is_set = False
        self._tokens: SimpleQueue[None] = SimpleQueue()

    def is_set(self) -> bool:
        """Returns whether it is over."""
        return self._is_set

    def set(self) -> None:
        """Say that it is over."""
        self._is_set = True
        self._tokens.put(None)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is over, at most ``timeout`` seconds; returns whether it is."""
        from queue import Empty

        end = float("inf") if timeout is None else monotonic() + timeout
        while not self._is_set and (left := end - monotonic()) > 0:
            try:
                self._tokens.get(timeout=min(left, _LOOK_AGAIN))
            except Empty:
                continue
            self._tokens.put(None)  # for the next that waits
        return self._is_set
