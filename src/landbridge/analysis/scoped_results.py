"""Results that hold under conditions, kept for as long as what they were found from stays as it is.

A condition tells more of some atoms. What was found without asking about these holds under it too, and what was found
under it without asking about them holds outside: so a result remembers whom it asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any


class ScopedResults:
    """Results by key. Atoms are numbers, and sets of them the bits of an integer."""

    def __init__(self) -> None:
        #: From the outermost condition inwards: the atoms it tells of, and what was found: the result, whom it asked.
        self._scopes: list[tuple[int, dict[Hashable, tuple[Any, int]]]] = [(0, {})]
        self._queried = 0

    def ask(self, atom: int) -> None:
        """What is being found depends on what is known of ``atom``."""
        self._queried |= 1 << atom

    def get(self, key: Hashable, find: Callable[[Any], Any], argument: Any, provisional: Any) -> Any:
        """The result of ``key``: ``find(of)`` where none holds here, and ``provisional`` where that needs it itself."""
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
        results[key] = provisional, -1  # holds nowhere else
        result = find(argument)
        del results[key]
        level = len(self._scopes) - 1
        while level and not self._queried & self._scopes[level][0]:
            level -= 1  # the condition changed nothing that was asked about
        self._scopes[level][1][key] = result, self._queried
        self._queried |= outside
        return result

    @contextmanager
    def assumptions_about(self, atoms: int) -> Iterator[None]:
        """Code under a condition that tells of ``atoms``."""
        self._scopes.append((atoms, {}))
        try:
            yield
        finally:
            self._scopes.pop()
