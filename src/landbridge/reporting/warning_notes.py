"""Warnings of a compile: they are issued at once, and recorded so that a cached result issues them again."""

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
    """A recorded warning: the name of its class, and its message."""

    kind: str
    text: str


#: Where lines of this package are.
_PACKAGE = str(Path(__file__).parents[1])

_notes: ContextVar[list[NotedWarning] | None] = ContextVar("landbridge_warnings", default=None)


def warn(text: str, kind: type[Warning]) -> None:
    """Issues a warning at the line that called this package, as ``warnings.warn``, and records it for ``noting``."""
    notes = _notes.get()
    if notes is not None:
        notes.append(NotedWarning(kind.__name__, text))
    warnings.warn(text, kind, stacklevel=_callers_level())


def tell_again(reported: NotedWarning) -> None:
    """Issues a recorded warning again, at the line that calls this package now."""
    warnings.warn(reported.text, _KINDS.get(reported.kind, UserWarning), stacklevel=_callers_level())


def _callers_level() -> int:
    """Returns the ``stacklevel=`` of the innermost line outside this package and contextlib."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_code.co_filename.startswith((_PACKAGE, contextlib.__file__)):
        frame, level = frame.f_back, level + 1
    return level


@contextmanager
def noting() -> Iterator[list[NotedWarning]]:
    """Yields a list of the warnings that ``warn`` issues in this thread within the block."""
    notes: list[NotedWarning] = []
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)
