"""Reports stages of long work to a listener of this thread, such as a command that shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("landbridge_stages", default=None)


def begin_stage(name: str) -> None:
    """Reports that stage ``name`` begins; does nothing without a listener."""
    listener = _listener.get()
    if listener is not None:
        listener(name)


def has_listener() -> bool:
    """Returns whether this thread has a listener."""
    return _listener.get() is not None


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Calls ``listener`` with the name of each stage that begins in this thread within the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
