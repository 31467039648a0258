"""Decision trees as tables that are followed from node to node."""

from __future__ import annotations

import numpy as np

from landbridge.ops.context import Array
from landbridge.ops.tree_tests import TreeTests
from landbridge.records import record

#: A node's word: the next node in the low half, then whether NaN goes there and not to the node after it, then whether
#: the node tests equality, then the feature. Words of leaves are negative.
NAN_FIRST, EQUAL, FEATURE_SHIFT = 1 << 32, 1 << 33, 34
_LEAF = -(1 << 63)


@record(frozen=True, eq=False)
class WalkedTrees:
    """Trees whose nodes are followed one after the other; the first tree begins at node 1, the second at node 2, and so
    on.

    A node continues with the node in its word, or with the one after that if ``x[feature] <= value[n]`` does not hold;
    a leaf continues with itself. There are ``padded`` trees; those after ``count`` consist of one leaf without votes.
    ``nodes`` are the numbers of the nodes in the file, -1 for padding.
    """

    words: Array
    value: Array
    nodes: Array
    count: int
    padded: int

    def has(self, flag: int) -> bool:
        """Returns whether a word has the bit ``flag``."""
        return bool((self.words & flag).any())

    def all_have(self, flag: int) -> bool:
        """Returns whether the words of all nodes that test have the bit ``flag``."""
        return bool((self.words[self.words >= 0] & flag).all())


def walked(tests: TreeTests, column: Array, together: int) -> WalkedTrees | None:
    """Returns the trees of ``tests``, padded to a multiple of ``together``; None where a path has a cycle. ``column``
    is the feature that each node reads.
    """
    inner = _inner_nodes(tests)
    if inner is None:
        return None
    count = len(tests.roots)
    padded = -(-count // together) * together
    # An unused node, because a leaf's word refers to the node before it; the roots; the successors of inner nodes, in
    # pairs.
    pairs = np.stack([tests.first[inner], tests.second[inner]], 1).reshape(-1)
    nodes = np.concatenate([[-1], tests.roots, np.full(padded - count, -1), pairs])
    pair = np.zeros(len(tests.value), np.int64)
    pair[inner] = 1 + padded + 2 * np.arange(len(inner))
    is_leaf = (nodes < 0) | tests.is_leaf[nodes]
    numbers = np.arange(len(nodes))
    words = pair[nodes] | (column[nodes].astype(np.int64) << FEATURE_SHIFT)
    words |= np.where(tests.nan_first[nodes], NAN_FIRST, 0) | np.where(tests.equal[nodes], EQUAL, 0)
    # Tests of NaN fail, so a leaf continues with the node after the one in its word, which is itself.
    words = np.where(is_leaf, np.maximum(numbers - 1, 0) | _LEAF, words)
    return WalkedTrees(
        words, np.where(is_leaf, np.nan, tests.value[nodes]).astype(tests.value.dtype), nodes, count, padded
    )


def _inner_nodes(tests: TreeTests) -> Array | None:
    """Returns nodes with tests that are reached from the roots, each once; None where one is reached from itself."""
    level = np.unique(tests.roots)
    is_reached = np.zeros(len(tests.value), bool)
    while len(level := level[~is_reached[level] & ~tests.is_leaf[level]]):
        is_reached[level] = True
        level = np.unique(np.concatenate([tests.first[level], tests.second[level]]))
    inner = np.flatnonzero(is_reached)
    in_degrees = np.bincount(np.concatenate([tests.first[inner], tests.second[inner]]), minlength=len(tests.value))
    level, ordered = inner[in_degrees[inner] == 0], 0
    while len(level):
        ordered += len(level)
        following = np.concatenate([tests.first[level], tests.second[level]])
        np.subtract.at(in_degrees, following, 1)
        following = np.unique(following)
        level = following[(in_degrees[following] == 0) & ~tests.is_leaf[following]]
    return inner if ordered == len(inner) else None
