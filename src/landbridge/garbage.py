"""Cyclic garbage collection, paused where much is made that stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
    """Free garbage of what was made since collection was paused: operations that passes replaced hold each other."""
    gc.collect(0)
