"""Candidate orders of a search among the buffers that fit a floor; several race, as none is best everywhere."""

from __future__ import annotations

from itertools import pairwise

from landbridge.planner.exact.problem import Problem

#: Sort keys, most significant first and each largest first: W sections spanned, Z size, A their product, T the most
#: bytes alive together with it. The names are those of MiniMalloc (Moffitt, ASPLOS 2023).
ORDERS = ("WAT", "ZWT", "TWA", "TAW", "AWT", "ZTW")


def ranks(p: Problem, name: str) -> list[int]:
    """Returns the rank of each buffer in the order ``name``."""
    n = len(p.size)
    sections = pairwise(p.section_at[q] for q in range(len(p.section_at)))
    total = [sum(p.size[p.section[x]] for x in range(*span)) for span in sections]
    facts = {
        "W": [p.last[j] - p.first[j] for j in range(n)],
        "Z": [p.size[j] for j in range(n)],
        "A": [p.size[j] * (p.last[j] - p.first[j]) for j in range(n)],
        "T": [max(total[p.first[j] : p.last[j]]) for j in range(n)],
    }
    result = [0] * n
    for rank, j in enumerate(sorted(range(n), key=lambda j: tuple(-facts[key][j] for key in name))):
        result[j] = rank
    return result
