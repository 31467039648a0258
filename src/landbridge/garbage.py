"""Cyclic garbage collection, paused where much is made that stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: Objects that refer to others, about 100 bytes each.
_MUCH = 100_000


@contextmanager
def collector_paused() -> Iterator[None]:
    """No cyclic garbage collection meanwhile: it would walk all that is made again and again, and find nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def collect_new() -> None:
    """Free garbage of what was made since this was done last, where that is much: operations that passes replaced hold
    each other."""
    if gc.get_count()[0] >= _MUCH:
        gc.collect(0)
