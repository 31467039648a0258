"""Memoized results that are valid under conditions, for as long as the facts that they were derived from stay valid.

A condition adds facts about some atoms. A result that did not query these atoms stays valid under the condition, and a
result found under it without querying them is valid outside: so each result records the atoms that it queried.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any


class ScopedResults:
    """Results by key. Atoms are numbers, and sets of them are the bits of an integer."""

    def __init__(self) -> None:
        #: By condition, from the outermost inwards: the atoms it adds facts about, and results with the atoms they
        #: queried.
        self._scopes: list[tuple[int, dict[Hashable, tuple[Any, int]]]] = [(0, {})]
        self._queried = 0

    def ask(self, atom: int) -> None:
        """Record that the current result depends on what is known of ``atom``."""
        self._queried |= 1 << atom

    def get(self, key: Hashable, find: Callable[[Any], Any], argument: Any, provisional: Any) -> Any:
        """Returns the result of ``key``: a valid one, else ``find(argument)``; a recursive query gets
        ``provisional``."""
        assumed, results = self._scopes[-1]
        if (found := results.get(key)) is not None:
            self._queried |= found[1]
            return found[0]
        for atoms, results in self._scopes[-2::-1]:
            if (found := results.get(key)) is not None and not found[1] & assumed:
                self._queried |= found[1]
                return found[0]
            assumed |= atoms
        outside, self._queried = self._queried, 0
        results = self._scopes[-1][1]
        results[key] = provisional, -1  # valid nowhere else
        result = find(argument)
        del results[key]
        level = len(self._scopes) - 1
        while level and not self._queried & self._scopes[level][0]:
            level -= 1  # the condition changed nothing that was queried
        self._scopes[level][1][key] = result, self._queried
        self._queried |= outside
        return result

    @contextmanager
    def assumptions_about(self, atoms: int) -> Iterator[None]:
        """Open a scope for code under a condition that adds facts about ``atoms``."""
        self._scopes.append((atoms, {}))
        try:
            yield
        finally:
            self._scopes.pop()
