"""Shortens names of nodes. The name of a kernel joins those of its nodes by ``+``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

_SEPARATORS = "./:"


def common_prefix(names: Iterable[str]) -> str:
    """Returns the prefix of nearly all ``names``, up to a separator: exporters put one word before every node's name.

    What is left of a name must have letters in it: numbers alone say nothing.
    """
    firsts = [name.partition("+")[0] for name in names]
    prefixes = Counter(first[:end] for first in firsts for end in _ends(first))
    shared = [prefix for prefix, count in prefixes.items() if count * 5 > len(firsts) * 4]
    return max(shared, key=len, default="")


def without_prefix(name: str, prefix: str) -> str:
    """Returns ``name`` with ``prefix`` taken off each of its nodes."""
    return "+".join(node.removeprefix(prefix) for node in name.split("+")) if prefix else name


def shortened(name: str, characters: int) -> str:
    """Returns ``name`` in at most ``characters``: its first node, and of that both ends."""
    if len(name) <= characters:
        return name
    node, _, _ = name.partition("+")
    if node != name and len(node) + 2 <= characters:
        return f"{node}+…"
    if len(node) <= characters:
        return node
    retained = max(characters - 1, 0)
    tail = retained // 2
    return f"{node[: retained - tail]}…{node[len(node) - tail :]}"


def _ends(name: str) -> list[int]:
    return [at + 1 for at, c in enumerate(name) if c in _SEPARATORS and any(map(str.isalpha, name[at + 1 :]))]
