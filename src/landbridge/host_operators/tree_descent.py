"""The way of many samples down many trees: all of them one level at a time, in few passes over small arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from landbridge.host_operators.registry import Array
from landbridge.host_operators.tree_nodes import EQ, GT, GTE, LEAF, LT, NEQ
from landbridge.records import record

#: Places, of a sample in a tree, that are looked at together: what is read of them stays in a near cache.
_TOGETHER = 1 << 14


@record(frozen=True, eq=False)
class Descent:
    """Nodes of trees, each with the two that follow beside each other, for arrays that are read by number alone.

    A node tests ``x[feature] <= value``, one ``equal`` also ``x[feature] == value``, after the other tests became one
    of these with what follows turned; leaves are followed by themselves. What follows node n is in ``after`` at 2n and
    2n + 1, as 2m of node m, so that no number is multiplied on the way; the others have each node twice for it.
    ``to_no``: where NaN goes. ``order``: trees by depth, the deepest first; ``active`` has how many go on at a level.
    """

    feature: Array
    value: Array
    equal: Array | None
    to_no: Array
    after: Array
    roots: Array
    order: Array
    active: tuple[int, ...]

    @staticmethod
    def of(feature: Array, value: Array, mode: Array, missing: Array, yes: Array, no: Array, roots: Array) -> Descent:
        """That of nodes with these tests, of modes up to NEQ, in the dtype of ``value``; see ``tree_nodes``."""
        turned = np.isin(mode, (GTE, GT, NEQ))  # x >= v is no x < v, x > v no x <= v, x != v no x == v
        below = np.isin(mode, (LT, GTE))
        least = np.nextafter(value, np.array(-np.inf, value.dtype))
        is_leaf, own = mode == LEAF, np.arange(len(mode))
        first, second = np.where(turned, no, yes), np.where(turned, yes, no)
        after = np.stack([np.where(is_leaf, own, first), np.where(is_leaf, own, second)], 1)
        is_equal = np.isin(mode, (EQ, NEQ))
        depth = _depths(after, is_leaf, roots)
        order = np.argsort(-depth, kind="stable")
        twice = [np.repeat(each, 2) for each in (feature, np.where(below, least, value), is_equal)]
        return Descent(
            twice[0].astype(np.intp),
            twice[1],
            twice[2] if is_equal.any() else None,
            np.repeat((missing | (mode == NEQ)) == turned, 2),
            (2 * after).reshape(-1).astype(np.intp),
            (2 * roots[order]).astype(np.intp),
            order,
            tuple(int((depth > level).sum()) for level in range(depth.max(initial=0))),
        )

    def leaves(self, x: Array) -> Iterator[tuple[slice, Array]]:
        """Samples and, a row a tree in ``order`` and a column a sample, twice the number of the leaf each ends in."""
        step = max(1, _TOGETHER // max(1, len(self.roots)))
        for begin in range(0, len(x), step):
            rows = slice(begin, begin + step)
            yield rows, self._leaves(np.ascontiguousarray(x[rows]))

    def _leaves(self, x: Array) -> Array:
        count, width = x.shape
        at = np.repeat(self.roots[:, None], count, 1)
        flat, row = x.reshape(-1), width * np.arange(count)
        with_nan = x.dtype.kind == "f" and bool(np.isnan(x).any())
        for active in self.active:
            here = at[:active]
            place = self.feature.take(here, mode="clip")
            place += row
            given = flat.take(place, mode="clip")
            value = self.value.take(here, mode="clip")
            second = given > value
            if self.equal is not None:
                second |= (given != value) & self.equal.take(here, mode="clip")
            if with_nan:
                second = np.where(np.isnan(given), self.to_no.take(here, mode="clip"), second)
            np.add(here, second, out=place)
            self.after.take(place, out=here, mode="clip")
        return at


def _depths(after: Array, is_leaf: Array, roots: Array) -> Array:
    """How many tests there are on the longest way from each of ``roots``; as many as nodes where a way has no end."""
    depth = np.zeros(len(roots), np.int64)
    nodes, tree = roots, np.arange(len(roots))
    for level in range(len(after) + 1):
        goes_on = ~is_leaf[nodes]
        nodes, tree = nodes[goes_on], tree[goes_on]
        if not len(nodes):
            break
        depth[tree] = min(level + 1, len(after))
        pairs = np.unique(np.stack([after[nodes].reshape(-1), np.repeat(tree, 2)], 1), axis=0)
        nodes, tree = pairs[:, 0], pairs[:, 1]
    return depth
