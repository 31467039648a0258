"""Short representations of the large parts of an Executable: tables and lists that say how much they hold."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

_SHOWN = 4


class Table(dict[K, V]):
    """A dict whose repr shows its first keys."""

    def __repr__(self) -> str:
        return f"{{{shown((repr(key) for key in self), len(self))}}}"


class Listing(tuple[T, ...]):
    """A tuple whose repr shows its first items."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"({shown(map(repr, self), len(self))})"


def shown(texts: Iterable[str], count: int) -> str:
    """Returns the first of ``count`` texts, each cut where it is long, and how many there are."""
    listed = ", ".join(cut(text, 60) for text in islice(texts, _SHOWN))
    return listed if count <= _SHOWN else f"{listed}, ... {count} in all"


def cut(text: str, most: int) -> str:
    """Returns ``text``, or as much of it as fits into ``most`` characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def freeze(owner: Any, **values: Any) -> None:
    """Sets fields of a frozen dataclass while it is made."""
    for name, value in values.items():
        object.__setattr__(owner, name, value)
