"""Named rewrites: the rules by which passes change IR.

A pass is a sequence of rules. Each is a function that ``rewrite`` registers under ``PASS.RULE``, so that all can be
listed, and each can be disabled alone: to find the rule that breaks a program, and in tests, which compare the IR with
and without it (``tests/passes/ir/PASS/RULE.mlir``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar

from landbridge.errors import CompileError
from landbridge.records import record

_P = ParamSpec("_P")
_R = TypeVar("_R")


@record(frozen=True)
class Rewrite:
    """A rule of a pass: ``name`` is ``PASS.RULE``, and ``doc`` a sentence on what it changes."""

    name: str
    doc: str


_rewrites: dict[str, tuple[Rewrite, str]] = {}
_disabled: ContextVar[frozenset[str]] = ContextVar("disabled_rewrites", default=frozenset())


def rewrite(name: str, doc: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R | None]]:
    """Returns a decorator that registers a function as the rewrite ``name``, ``PASS.RULE``; ``doc`` says what it does.

    The function changes IR, or decides whether and how that is done; it returns a false value where it does not apply.
    While the rewrite is disabled, calls return None. Raises CompileError if the name is taken.
    """

    def register(function: Callable[_P, _R]) -> Callable[_P, _R | None]:
        defined = f"{function.__module__}.{function.__qualname__}"
        if name in _rewrites and _rewrites[name][1] != defined:
            raise CompileError(f"two rewrites are called {name!r}; rename one")
        _rewrites[name] = Rewrite(name, doc), defined

        @wraps(function)
        def unless_disabled(*args: _P.args, **kwargs: _P.kwargs) -> _R | None:
            return None if name in _disabled.get() else function(*args, **kwargs)

        return unless_disabled

    return register


def imported_rewrites() -> list[Rewrite]:
    """Returns the rewrites of the passes that are imported, sorted by name; ``registry.rewrites`` imports all."""
    return [_rewrites[name][0] for name in sorted(_rewrites)]


@contextmanager
def without(names: Collection[str]) -> Iterator[None]:
    """Disable the rewrites ``names`` in this thread while the context is open."""
    token = _disabled.set(_disabled.get() | frozenset(names))
    try:
        yield
    finally:
        _disabled.reset(token)
