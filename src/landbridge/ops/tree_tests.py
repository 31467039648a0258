"""The nodes of decision trees, reduced to tests of one kind: whether a feature is at most a number."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from landbridge.ops.tree_nodes import EQ, GT, GTE, LEAF, LT, MEMBER, NEQ, TreeNodes
from landbridge.records import record

Array: TypeAlias = np.ndarray[Any, Any]


@record(frozen=True, eq=False)
class TreeTests:
    """Nodes that continue with ``first`` if ``x[feature] <= value``, else with ``second``; a leaf continues with
    itself.

    Nodes in ``equal`` test ``x[feature] == value``. ``nan_first``: NaN continues with ``first``. ``votes_of``: the
    original node whose votes a leaf has, because there may be more nodes than in the file.
    """

    feature: Array
    value: Array
    equal: Array
    nan_first: Array
    first: Array
    second: Array
    is_leaf: Array
    roots: Array
    votes_of: Array

    @staticmethod
    def of(nodes: TreeNodes) -> TreeTests:
        """Converts ``nodes``. A test that no number passes becomes a comparison with NaN."""
        mode, value = nodes.mode, nodes.value
        below, inner, above = np.isin(mode, (LT, GTE)), mode != LEAF, np.isin(mode, (GTE, GT))
        # x >= v is not x < v, x > v is not x <= v, x != v is not x == v; but no number is at least NaN.
        swapped = (above & ~np.isnan(value)) | (mode == NEQ)
        tests = TreeTests(
            np.where(inner, nodes.feature, 0),
            _never_zero(np.where(below, _next_below(value), value)),
            np.isin(mode, (EQ, NEQ, MEMBER)),
            (nodes.missing | (mode == NEQ)) != swapped,
            np.where(swapped, nodes.no, nodes.yes),
            np.where(swapped, nodes.yes, nodes.no),
            ~inner,
            nodes.roots,
            np.arange(len(mode)),
        )
        sets = [(int(n), nodes.members[n][~np.isnan(nodes.members[n])]) for n in np.flatnonzero(mode == MEMBER)]
        return tests._with_members([(n, found if len(found) else np.array([np.nan])) for n, found in sets])

    def _with_members(self, sets: list[tuple[int, Array]]) -> TreeTests:
        """Returns the tests with each node that looks for members replaced by a chain of nodes, one per member."""
        if not sets:
            return self
        value, second = self.value.copy(), self.second.copy()
        added: list[tuple[int, float, int]] = []  # of node, value, and what follows where it is another
        for node, members in sets:
            after, value[node] = int(second[node]), members[0]
            chain = [node, *range(len(value) + len(added), len(value) + len(added) + len(members) - 1)]
            added += [(node, each, after) for each in members[1:].tolist()]
            for here, there in pairwise(chain):
                if here < len(second):
                    second[here] = there
                else:
                    added[here - len(value)] = (node, added[here - len(value)][1], there)
        like = np.array([node for node, _, _ in added], np.int64)

        def more(a: Array, b: Array) -> Array:
            return np.concatenate([a, b]).astype(a.dtype)

        return TreeTests(
            more(self.feature, self.feature[like]),
            more(value, np.array([each for _, each, _ in added])),
            more(self.equal, self.equal[like]),
            more(self.nan_first, self.nan_first[like]),
            more(self.first, self.first[like]),
            more(second, np.array([there for _, _, there in added])),
            more(self.is_leaf, self.is_leaf[like]),
            self.roots,
            more(self.votes_of, like),
        )


def _next_below(value: Array) -> Array:
    """Returns the next lower number of each; NaN where there is none."""
    return np.where(value == -np.inf, np.nan, np.nextafter(value, np.array(-np.inf, value.dtype))).astype(value.dtype)


def _never_zero(value: Array) -> Array:
    """Computes ``value``, of which no number below 0 is one that kernels flush to 0, so that 0 stays above it."""
    tiny = np.finfo(value.dtype).tiny
    return np.where((value < 0) & (value > -tiny), -tiny, value)


@record(frozen=True, eq=False)
class MaskedTrees:
    """Trees with few leaves, a row each: their inner nodes, padded at the end, and their leaves.

    Leaves are numbered from the left, where ``first`` is left. ``mask`` has a bit for each leaf, cleared for the leaves
    that are left of a node, which a failed test excludes. The lowest bit that all failed tests leave set is the leaf of
    a sample (Lucchese et al., "QuickScorer", 2015). ``leaves`` are nodes; their number per row is a power of two.
    """

    feature: Array
    value: Array
    mask: Array
    leaves: Array


#: The most leaves of a tree that a mask can represent.
MOST_LEAVES = 64


def masked(tests: TreeTests, roots: Array, column: Array) -> MaskedTrees | None:
    """Returns the trees from ``roots`` on; None if one has more leaves than a mask has bits.

    ``column`` is the feature that each node reads. A negative root is an absent tree, whose leaves are -1.
    """
    found = [_spread(tests, int(root)) if root >= 0 else _Spread([], [], []) for root in roots]
    trees = [each for each in found if each is not None]
    if len(trees) < len(found):
        return None
    most = max((len(tree.leaves) for tree in trees), default=1)
    bits, wide = (np.int32, 32) if most <= 32 else (np.int64, 64)
    inner, leaves = max(most - 1, 1), 1 << (most - 1).bit_length()
    feature, value = np.zeros((len(trees), inner), np.int32), np.zeros((len(trees), inner), tests.value.dtype)
    mask, ends = np.full((len(trees), inner), -1, bits), np.full((len(trees), leaves), -1)
    for row, tree in enumerate(trees):
        count = len(tree.nodes)
        feature[row, :count], value[row, :count] = column[tree.nodes], tests.value[tree.nodes]
        gone = [((1 << (end - begin)) - 1) << begin for begin, end in tree.left]
        mask[row, :count] = np.array([(1 << wide) - 1 - each for each in gone], f"u{wide // 8}").astype(bits)
        ends[row, : len(tree.leaves)] = tree.leaves
    return MaskedTrees(feature, value, mask, ends)


@record(frozen=True, eq=False)
class _Spread:
    """The inner nodes of a tree, the leaves that are left of each, and all leaves."""

    nodes: list[int]
    left: list[tuple[int, int]]
    leaves: list[int]


def _spread(tests: TreeTests, root: int) -> _Spread | None:
    """Returns the tree below ``root``; None if it has too many leaves."""
    created = _Spread([], [], [])
    pending: list[tuple[int, int]] = [(root, -1)]  # a node, or the end of what is left of an inner one
    while pending:
        node, parent = pending.pop()
        if parent >= 0:
            created.left[parent] = created.left[parent][0], len(created.leaves)
        elif tests.is_leaf[node]:
            created.leaves.append(node)
            if len(created.leaves) > MOST_LEAVES:
                return None
        else:
            if len(created.nodes) >= MOST_LEAVES:
                return None
            created.nodes.append(node)
            created.left.append((len(created.leaves), 0))
            pending += [(int(tests.second[node]), -1), (node, len(created.nodes) - 1), (int(tests.first[node]), -1)]
    return created


def spoken_of(tests: TreeTests, root: int, has_vote: Array) -> int | None:
    """Returns the only target that leaves of a tree vote for; None for several, and for trees of too many leaves."""
    tree = _spread(tests, root)
    if tree is None:
        return None
    found = np.flatnonzero(has_vote[tree.leaves].any(0))
    return None if len(found) > 1 else int(found[0]) if len(found) else 0
