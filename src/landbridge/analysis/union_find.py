"""UnionFind: disjoint sets of hashable objects, joined in pairs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class UnionFind(Generic[T]):
    """Disjoint sets; an object that was never joined is a set by itself."""

    def __init__(self) -> None:
        self._parent: dict[T, T] = {}

    def members(self) -> list[T]:
        """Returns the objects that were joined, in the order in which they first were."""
        return list(self._parent)

    def find(self, x: T) -> T:
        """Returns the representative of the set of ``x``."""
        parent = self._parent
        while (p := parent.get(x, x)) is not x:
            parent[x] = parent.get(p, p)  # path halving, or each member would walk a long chain
            x = p
        return x

    def join(self, a: T, b: T) -> None:
        """Make the sets of ``a`` and ``b`` one."""
        self._parent.setdefault(a, a)
        self._parent.setdefault(b, b)
        self._parent[self.find(a)] = self.find(b)
