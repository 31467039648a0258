"""Racer: one search with its own order and working memory, interpreted or compiled."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from copy import copy

from landbridge.planner.exact import kernel
from landbridge.planner.exact.compiled import Search
from landbridge.planner.exact.problem import Ints, Problem
from landbridge.planner.exact.state import SearchState, new_state


class Racer:
    """Searches one Problem repeatedly; candidates are tried in the order of ``rank``.

    What a racer learned stays from search to search: the weights of its order, and the refuted states. One thread at a
    time may use it, except that any thread may call ``stop``.
    """

    def __init__(self, problem: Problem, rank: Sequence[int], search: Search, table_bits: int) -> None:
        self._search = search
        self._compiled = search is not kernel.search
        self._table_size = 1 << table_bits
        self._capacity = -1
        self._problem, self._state = problem, new_state(problem)._replace(rank=list(rank))
        if self._compiled:
            self._problem, self._state = Problem(*_arrays(problem)), SearchState(*_arrays(self._state))

    def sibling(self, rank: Sequence[int]) -> Racer:
        """Returns another racer for the same Problem, with the order ``rank`` and working memory of its own.

        This racer must not have searched yet, so that neither of them has learned anything.
        """
        other = copy(self)
        other._state = SearchState(*map(copy, self._state))
        for j, r in enumerate(rank):
            other._state.rank[j] = r
        return other

    def aim(self, capacity: int, latest: Sequence[int]) -> None:
        """Let later searches look for plans within ``capacity`` units, in which buffer j starts at ``latest[j]`` or
        below.
        """
        # Refuted states stay refuted when nothing may lie higher than before.
        looser = any(offset > self._state.latest[j] for j, offset in enumerate(latest))
        if looser or capacity > self._capacity:
            self._state = self._state._replace(refuted1=self._table(), refuted2=self._table())
        self._capacity = capacity
        for j, offset in enumerate(latest):
            self._state.latest[j] = offset

    def relearn(self, seed: int) -> None:
        """Replace the weights that searches have learned by small random ones, drawn with ``seed``."""
        rng = random.Random(seed)
        for q in range(len(self._state.weight)):
            self._state.weight[q] = rng.randint(1, 4)

    def search(self, node_limit: int) -> int:
        """Run one search from the root and return the kernel's answer."""
        return self._search(self._problem, self._state, self._capacity, node_limit)

    def stop(self, stopped: bool = True) -> None:
        """Let a search that is running end soon with `kernel.STOPPED`, and later ones at once.

        ``stop(False)`` undoes it.
        """
        self._state.stop[0] = int(stopped)

    def offsets(self) -> list[int]:
        """Returns the offset of each buffer in units; only after a search that ended with `kernel.FOUND`."""
        return [int(self._state.offset[j]) for j in range(len(self._state.offset))]

    def _table(self) -> Ints:
        if not self._compiled:
            return [-1] * self._table_size
        import numpy as np

        return np.full(self._table_size, -1, np.int64)


def _arrays(fields: Iterable[Ints]) -> Iterator[Ints]:
    import numpy as np

    return (np.asarray(field, np.int64) for field in fields)
