"""Stages of long work, told to who listens in this thread: a command that shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("landbridge_stages", default=None)


def begin_stage(name: str) -> None:
    """Say that ``name`` begins; nothing where nobody listens."""
    listener = _listener.get()
    if listener is not None:
        listener(name)


def has_listener() -> bool:
    """Return whether somebody listens in this thread."""
    return _listener.get() is not None


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Call ``listener`` with the name of each stage that begins meanwhile in this thread."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
