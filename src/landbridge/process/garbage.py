"""Pauses cyclic garbage collection where many objects are made that stay alive."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

#: Objects that refer to others, about 100 bytes each.
_MUCH = 1_000_000

#: One item for each pause that will end with the collector enabled.
_pausing: list[None] = []


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pauses cyclic garbage collection in the block, for code that makes many objects that stay alive: collections
    would walk them repeatedly and free none.
    """
    enabled = gc.isenabled()
    try:  # from here on, as an interrupt may come between any two
        if enabled:
            _pausing.append(None)
        gc.disable()
        yield
    finally:
        if enabled:
            _pausing[-1:] = []  # a child process pauses nothing
            gc.enable()


def never_collect() -> None:
    """Disables cyclic garbage collection for a process that does one thing and ends, and at its exit too, where Python
    would free object by object what the system frees at once: 0.4 s of a compile.
    """
    gc.disable()
    atexit.register(gc.freeze)  # collections skip frozen objects


def collect_new() -> None:
    """Collects garbage made since the last collection, where there may be much: operations that passes replaced form
    cycles.
    """
    if gc.get_count()[0] >= _MUCH:
        gc.collect(0)


def _resume() -> None:
    """Enables the collector in a child process forked during a pause.

    The threads whose pauses would end there exist only in the parent.
    """
    if _pausing:
        _pausing.clear()
        gc.enable()


os.register_at_fork(after_in_child=_resume)
