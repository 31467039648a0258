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
    """Searches one Problem repeatedly, with candidates by ``rank``.

    What it learned stays from search to search: the weights, which belong to the order, and the refuted states. Used by
    one thread at a time; only ``stop`` may be called from another.
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
        """Returns another racer that has learned nothing yet; neither may have run."""
        other = copy(self)
        other._state = SearchState(*map(copy, self._state))
        for j, r in enumerate(rank):
            other._state.rank[j] = r
        return other

    def aim(self, capacity: int, latest: Sequence[int]) -> None:
        """Search from now on for plans within ``capacity`` units, with buffer j at ``latest[j]`` at most."""
        # Refuted states stay refuted when nothing may lie higher than before.
        looser = any(offset > self._state.latest[j] for j, offset in enumerate(latest))
        if looser or capacity > self._capacity:
            self._state = self._state._replace(refuted1=self._table(), refuted2=self._table())
        self._capacity = capacity
        for j, offset in enumerate(latest):
            self._state.latest[j] = offset

    def relearn(self, seed: int) -> None:
        """Reset to small random weights, because the learned ones lead nowhere."""
        rng = random.Random(seed)
        for q in range(len(self._state.weight)):
            self._state.weight[q] = rng.randint(1, 4)

    def search(self, node_limit: int) -> int:
        """Run one search from the root and return the kernel's answer."""
        return self._search(self._problem, self._state, self._capacity, node_limit)

    def stop(self, stopped: bool = True) -> None:
        """Make a running search end soon with `kernel.STOPPED`, and later ones at once, until undone."""
        self._state.stop[0] = int(stopped)

    def offsets(self) -> list[int]:
        """Returns offsets in units, after a search that ended with `kernel.FOUND`."""
        return [int(self._state.offset[j]) for j in range(len(self._state.offset))]

    def _table(self) -> Ints:
        if not self._compiled:
            return [-1] * self._table_size
        import numpy as np

        return np.full(self._table_size, -1, np.int64)


def _arrays(fields: Iterable[Ints]) -> Iterator[Ints]:
    import numpy as np

    return (np.asarray(field, np.int64) for field in fields)
