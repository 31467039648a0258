"""Kernels that follow decision trees from node to node, and that add up the votes of leaves.

A step waits for two loads, one after the other, so that several paths are followed at once: those of neighbouring
samples down one tree, whose nodes stay in L1, and where there are too few samples those of one sample down neighbouring
trees. A path ends at its leaf, however deep trees are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

import numpy as np
from xdsl.ir import SSAValue

from landbridge.ir.loop_builder import LoopBuilder
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import Value
from landbridge.ops.context import Array, BodyBuffer, OpContext
from landbridge.ops.walked_trees import EQUAL, FEATURE_SHIFT, NAN_FIRST, WalkedTrees
from landbridge.sizes.size import Extent

#: Ways that are followed at once.
TOGETHER = 16
#: Samples that go down a tree one after the other.
_ROWS = 32
#: What votes are combined from.
INITS = {"add": 0.0, "min": np.inf, "max": -np.inf}


def walked_leaves(c: OpContext, x: SSAValue, trees: WalkedTrees) -> SSAValue:
    """Returns the node that each sample of ``x`` (rows, features) ends in: int32 (blocks of rows, rows of a block,
    trees with those that say nothing).
    """
    rows, features = c.shape(x)
    blocks = (rows + _ROWS - 1) // _ROWS

    def build(p: PrimBuilder) -> None:
        def block(s: LoopBuilder, number: Value, *memrefs: SSAValue) -> None:
            x, words, value, found = (BodyBuffer(each, p.dtype(each)) for each in memrefs)
            walk = _Walk(s, x, words, value, trees, features)
            first = number * _ROWS

            def ends(rows_of_block: Sequence[Value], votes: Sequence[Value]) -> None:
                samples = [s.inside(first + row, rows) for row in rows_of_block]
                nodes = walk.ends(samples, [tree + 1 for tree in votes])
                for row, tree, node in zip(rows_of_block, votes, nodes, strict=True):
                    found.store(s, [number, row, tree], s.cast(node, "int32"))

            def down_tree(tree: Value) -> Sequence[Value]:
                def neighbours(row: Value) -> Sequence[Value]:
                    ends([s.inside(row + i, _ROWS) for i in range(TOGETHER)], [tree] * TOGETHER)
                    return ()

                s.loop(0, whole, [], neighbours, TOGETHER)
                return ()

            def alone(row: Value) -> Sequence[Value]:
                def neighbours(tree: Value) -> Sequence[Value]:
                    ends([s.inside(row, _ROWS)] * TOGETHER, [s.inside(tree + i, trees.padded) for i in range(TOGETHER)])
                    return ()

                s.loop(0, trees.padded, [], neighbours, TOGETHER)
                return ()

            count = s.minimum(s.const(rows, "index") - first, _ROWS)
            whole = count - s.binary("rem", count, TOGETHER)
            s.branch(whole > 0, lambda: s.loop(0, trees.count, [], down_tree))
            s.loop(whole, count, [], alone)

        p.forall(blocks, [*p.inputs, *p.outputs], block)

    operands = [x, _table(c, trees.words), _table(c, trees.value)]
    return c.g.call("tree_walk", operands, [((blocks, _ROWS, trees.padded), "int32")], build)[0]


class _Walk:
    """Writes code that goes down ``trees``, whose ``words`` and ``value`` are tables."""

    def __init__(
        self, s: LoopBuilder, x: BodyBuffer, words: BodyBuffer, value: BodyBuffer, trees: WalkedTrees, features: Extent
    ) -> None:
        self._s, self._x, self._words, self._value = s, x, words, value
        self._features, self._nodes = features, len(trees.words)
        self._is_mixed = trees.has(EQUAL) and not trees.all_have(EQUAL)
        self._is_equal, self._has_nan_first = trees.has(EQUAL), trees.has(NAN_FIRST)

    def ends(self, rows: Sequence[Value], roots: Sequence[Value]) -> Sequence[Value]:
        """Returns the leaves of the samples ``rows``, which start at ``roots``."""
        s, count = self._s, len(rows)

        def test(*at: Value) -> tuple[Value, Sequence[Value]]:
            here = [s.inside(node, self._nodes) for node in at]
            words = [self._words.load(s, [node]) for node in here]
            return reduce(and_, words) >= 0, [*here, *words]

        def step(*passed: Value) -> Sequence[Value]:
            return [self._next(*each) for each in zip(rows, passed[:count], passed[count:], strict=True)]

        return s.repeat(roots, test, step)[:count]

    def _next(self, row: Value, node: Value, word: Value) -> Value:
        s = self._s
        feature = s.binary("shr", word, FEATURE_SHIFT)
        given = self._x.load(s, [row, s.inside(feature, self._features)])
        limit = self._value.load(s, [node])
        further = given.ne(limit) if self._is_equal else s.logical_not(given <= limit)
        if self._is_mixed:
            further = s.select((word & EQUAL).ne(0), further, s.logical_not(given <= limit))
        if self._has_nan_first:
            further = s.select(given.ne(given), (word & NAN_FIRST).eq(0), further)
        return s.cast(s.cast(s.cast(word, "uint32"), "int64") + s.cast(further, "int64"), "index")


def votes_of_nodes(
    c: OpContext, leaves: SSAValue, rows: Extent, trees: WalkedTrees, votes: Array, speaks: Array, kind: str
) -> SSAValue:
    """Returns the votes of the ``leaves`` (blocks, rows of a block, trees) of ``rows`` samples for each target,
    combined by ``kind`` ("add", "min", "max"): float64 (rows, targets).

    ``votes`` (nodes, targets) has what the nodes of the file say, where ``speaks`` says that they do.
    """
    targets = votes.shape[1]
    is_voted = speaks[trees.nodes] & (trees.nodes >= 0)[:, None]
    first = np.concatenate([[0], np.cumsum(is_voted.sum(1))]).astype(np.int32)
    target, weight = np.nonzero(is_voted)[1].astype(np.int32), votes[trees.nodes][is_voted].astype(np.float64)
    if not len(weight):
        target, weight = np.zeros(1, np.int32), np.zeros(1)

    def build(p: PrimBuilder) -> None:
        def block(s: LoopBuilder, number: Value, *memrefs: SSAValue) -> None:
            leaves, first, target, weight, total = (BodyBuffer(each, p.dtype(each)) for each in memrefs)
            first_row = number * _ROWS

            def of_row(row: Value) -> Sequence[Value]:
                at = [number, s.inside(row - first_row, _ROWS)]

                def clear(number: Value) -> Sequence[Value]:
                    total.store(s, [row, number], s.const(INITS[kind], "float64"))
                    return ()

                def of_tree(tree: Value) -> Sequence[Value]:
                    leaf = s.inside(leaves.load(s, [*at, tree]), len(trees.nodes))
                    begin, end = (s.cast(first.load(s, [each]), "index") for each in (leaf, leaf + 1))
                    s.loop(begin, end, [], of_vote)
                    return ()

                def of_vote(vote: Value) -> Sequence[Value]:
                    vote = s.inside(vote, weight_count)
                    location = [row, s.inside(target.load(s, [vote]), targets)]
                    total.store(s, location, s.binary(kind, total.load(s, location), weight.load(s, [vote])))
                    return ()

                s.loop(0, targets, [], clear)
                s.loop(0, trees.count, [], of_tree)
                return ()

            s.loop(first_row, s.minimum(first_row + _ROWS, s.const(rows, "index")), [], of_row)

        p.forall((rows + _ROWS - 1) // _ROWS, [*p.inputs, *p.outputs], block)

    weight_count = len(weight)
    operands = [leaves, *(_table(c, table) for table in (first, target, weight))]
    return c.g.call("tree_votes", operands, [((rows, targets), "float64")], build)[0]


def _table(c: OpContext, table: Array) -> SSAValue:
    return c.g.constant(np.ascontiguousarray(table), c.g.node)
