"""Warnings of a compile: told at once, and noted for who keeps its result and has to tell them again."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from landbridge.errors import FallbackWarning, ModelWarning

_KINDS: dict[str, type[Warning]] = {kind.__name__: kind for kind in (FallbackWarning, ModelWarning)}


class NotedWarning(NamedTuple):
    """A warning: the name of its class, and what it says."""

    kind: str
    text: str


#: Where lines of this package are.
_PACKAGE = str(Path(__file__).parent)

_notes: ContextVar[list[NotedWarning] | None] = ContextVar("landbridge_warnings", default=None)


def warn(text: str, kind: type[Warning]) -> None:
    """As ``warnings.warn`` of the line that called this package, with a note for ``noting`` of this thread."""
    notes = _notes.get()
    if notes is not None:
        notes.append(NotedWarning(kind.__name__, text))
    warnings.warn(text, kind, stacklevel=_callers_level())


def tell_again(reported: NotedWarning) -> None:
    """Warn as it was told, of the line that called this package now."""
    warnings.warn(reported.text, _KINDS.get(reported.kind, UserWarning), stacklevel=_callers_level())


def _callers_level() -> int:
    """``stacklevel=`` for who calls this: the innermost line that is not of this package, contextlib's among ours."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_code.co_filename.startswith((_PACKAGE, contextlib.__file__)):
        frame, level = frame.f_back, level + 1
    return level


@contextmanager
def noting() -> Iterator[list[NotedWarning]]:
    """A list of what ``warn`` tells meanwhile in this thread."""
    notes: list[NotedWarning] = []
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)
