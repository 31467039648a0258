"""Cyclic garbage collection, paused where much is made that stays."""

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
    """No cyclic garbage collection meanwhile: it would walk all that is made again and again, and find nothing."""
    enabled = gc.isenabled()
    if enabled:
        _pausing.append(None)
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            _pausing[-1:] = []  # none in a child process
            gc.enable()


def never_collect() -> None:
    """For a process that does one thing and ends: no cyclic garbage collection from now on, nor by Python as it ends,
    which frees object by object what the system then takes at once: 0.4 s of a compile."""
    gc.disable()
    atexit.register(gc.freeze)  # what is frozen no collection looks at


def collect_new() -> None:
    """Free garbage of what was made since this was done last, where that is much: operations that passes replaced hold
    each other."""
    if gc.get_count()[0] >= _MUCH:
        gc.collect(0)


def _resume() -> None:
    """Enable the collector in a child process, which lacks the threads that paused it; the one that forked does so
    itself, somewhat later."""
    if _pausing:
        _pausing.clear()
        gc.enable()


os.register_at_fork(after_in_child=_resume)
