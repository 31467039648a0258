"""Warnings of a compile: told at once, and noted for who keeps its result and has to tell them again."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from landbridge.errors import FallbackWarning, ModelWarning

_KINDS: dict[str, type[Warning]] = {kind.__name__: kind for kind in (FallbackWarning, ModelWarning)}


class Told(NamedTuple):
    """A warning: the name of its class, and what it says."""

    kind: str
    text: str


_notes: ContextVar[list[Told] | None] = ContextVar("landbridge_warnings", default=None)


def warn(text: str, kind: type[Warning], stacklevel: int = 2) -> None:
    """As ``warnings.warn``, with a note for the ``noting`` that this thread is inside of."""
    notes = _notes.get()
    if notes is not None:
        notes.append(Told(kind.__name__, text))
    warnings.warn(text, kind, stacklevel=stacklevel + 1)


def tell_again(told: Told) -> None:
    """Warn as it was told, from where the caller's caller is."""
    warnings.warn(told.text, _KINDS.get(told.kind, UserWarning), stacklevel=4)


@contextmanager
def noting() -> Iterator[list[Told]]:
    """A list of what ``warn`` tells meanwhile in this thread."""
    notes: list[Told] = []
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)
