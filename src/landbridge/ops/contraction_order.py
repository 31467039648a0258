"""The order in which a product of several tensors is contracted, two at a time.

A tensor is the set of labels of its axes. The order is found by dynamic programming over subsets of the tensors (as in
Pfeifer, Haegeman and Verstraete, "Faster identification of optimal contraction sequences for tensor networks", 2014),
and of many tensors by taking the cheapest pair each time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import TypeAlias

#: The labels of a tensor's axes.
Labels: TypeAlias = frozenset[str]
#: Which two tensors of a list are contracted: they leave it, and their product is appended.
Pair: TypeAlias = tuple[int, int]

#: Tensors above which pairs are chosen one by one: subsets are as many as powers of two.
MOST_SUBSETS = 8


def contraction_order(
    terms: Sequence[Collection[str]], retained: Collection[str], extents: Mapping[str, int]
) -> list[Pair]:
    """Returns the pairs to contract one after the other, until one tensor is left; none where one loop nest over all of
    ``terms`` takes no more operations than the pairs. ``retained``: the labels of the result.
    """
    sets = [frozenset(term) for term in terms]
    if len(sets) < 3:
        return [(0, 1)] if len(sets) == 2 else []
    wanted = frozenset(retained)
    order = (_of_subsets if len(sets) <= MOST_SUBSETS else _greedy)(sets, wanted, extents)
    at_once = (len(sets) - 1) * _count(frozenset[str]().union(*sets), extents)
    return order if _cost(sets, wanted, extents, order) < at_once else []


def contracted(terms: Sequence[Collection[str]], retained: Collection[str], pair: Pair) -> Labels:
    """Returns the labels of the product of the two ``terms`` of ``pair`` that the result or another of ``terms``
    has.
    """
    needed = frozenset(retained).union(*(t for i, t in enumerate(terms) if i not in pair))
    return frozenset(terms[pair[0]]).union(terms[pair[1]]) & needed


def _count(labels: Labels, extents: Mapping[str, int]) -> int:
    return prod(extents[v] for v in labels)


def _pair_cost(both: Labels, created: Labels, extents: Mapping[str, int]) -> int:
    """Returns the cost of a pair: products, and elements that are written."""
    return _count(both, extents) + _count(created, extents)


def _cost(terms: Sequence[Labels], retained: Labels, extents: Mapping[str, int], order: Sequence[Pair]) -> int:
    total, left = 0, list(terms)
    for pair in order:
        created = contracted(left, retained, pair)
        total += _pair_cost(left[pair[0]] | left[pair[1]], created, extents)
        left = [t for i, t in enumerate(left) if i not in pair] + [created]
    return total


def _greedy(terms: Sequence[Labels], retained: Labels, extents: Mapping[str, int]) -> list[Pair]:
    left, order = list(terms), list[Pair]()

    def cost(pair: Pair) -> int:
        return _pair_cost(left[pair[0]] | left[pair[1]], contracted(left, retained, pair), extents)

    while len(left) > 1:
        pair = min(combinations(range(len(left)), 2), key=cost)
        created = contracted(left, retained, pair)
        left = [t for i, t in enumerate(left) if i not in pair] + [created]
        order.append(pair)
    return order


def _of_subsets(terms: Sequence[Labels], retained: Labels, extents: Mapping[str, int]) -> list[Pair]:
    """Returns the cheapest order of all. Subsets are numbers whose bits are terms."""
    count = len(terms)
    whole = (1 << count) - 1

    def labels(subset: int) -> Labels:
        inside = frozenset[str]().union(*(t for i, t in enumerate(terms) if subset >> i & 1))
        return inside & retained.union(*(t for i, t in enumerate(terms) if not subset >> i & 1))

    created = {1 << i: t for i, t in enumerate(terms)}
    best: dict[int, tuple[int, int]] = {1 << i: (0, 0) for i in range(count)}  # cost, and one of the two parts
    for subset in range(1, whole + 1):
        if subset in best:
            continue
        created[subset] = labels(subset)
        part, found = (subset - 1) & subset, list[tuple[int, int]]()
        while part > subset ^ part:  # each split is visited once
            other = subset ^ part
            here = _pair_cost(created[part] | created[other], created[subset], extents)
            found.append((best[part][0] + best[other][0] + here, part))
            part = (part - 1) & subset
        best[subset] = min(found)
    order, left = list[Pair](), [1 << i for i in range(count)]

    def contract(subset: int) -> None:
        part = best[subset][1]
        if not part:
            return
        contract(part)
        contract(subset ^ part)
        first, second = sorted((left.index(part), left.index(subset ^ part)))
        order.append((first, second))
        left[:] = [s for s in left if s not in (part, subset ^ part)] + [subset]

    contract(whole)
    return order
