"""Disjoint sets of hashable things, joined one pair after another."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class UnionFind(Generic[T]):
    """Disjoint sets; what was never joined is alone."""

    def __init__(self) -> None:
        self._parent: dict[T, T] = {}

    def members(self) -> list[T]:
        """What was joined with something, in the order in which it first was."""
        return list(self._parent)

    def find(self, x: T) -> T:
        """The one of its set that stands for ``x``."""
        parent = self._parent
        while (p := parent.get(x, x)) is not x:
            parent[x] = parent.get(p, p)  # half as far the next time, or a long chain is walked by each of its members
            x = p
        return x

    def join(self, a: T, b: T) -> None:
        """Make the sets of ``a`` and ``b`` one."""
        self._parent.setdefault(a, a)
        self._parent.setdefault(b, b)
        self._parent[self.find(a)] = self.find(b)
