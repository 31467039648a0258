"""Kernels of decision trees of up to 64 leaves: they find the leaf of each sample, and combine the votes of leaves.

Such trees are masks: each inner node is tested, for vectors of samples, and takes away the leaves that a sample cannot
end in. That is a comparison with a number that all lanes share, and a masked AND, in place of a load that waits for the
one before it: 30 nodes take about 100 instructions for 8 doubles. Other trees are followed (``tree_walk``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalar_dtypes import bits_of
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ops.context import Array, OpContext
from landbridge.ops.tree_tests import MaskedTrees

#: The bytes of a feature in a block of rows.
_BLOCK_BYTES = 64
#: The fewest targets for which vectors lie along the targets, if leaves vote for several.
_MANY_TARGETS = 4
#: The initial values of combined votes.
_INITS = {"add": 0.0, "min": np.inf, "max": -np.inf}


def feature_blocks(c: OpContext, x: SSAValue, fills: Sequence[float | None]) -> SSAValue:
    """Returns ``x`` (rows, features) in blocks of rows: (blocks, features, rows of a block), 0 for rows of padding.

    Features are repeated for each of ``fills``, which replaces NaN; None keeps it. The rows of a block are contiguous,
    and a block fits L1.
    """
    (rows, features), dtype = c.shape(x), c.dtype(x)
    block = _BLOCK_BYTES // (bits_of(dtype) // 8)
    blocks = (rows + block - 1) // block

    def build(p: PrimBuilder) -> None:
        whole = p.pad(p.inputs[0], [0, 0], [blocks * block - rows, 0], 0)
        for number, fill in enumerate(fills):

            def filled(s: ScalarBuilder, v: Value, fill: float | None = fill) -> Value:
                return v if fill is None else s.select(v.ne(v), s.const(fill, dtype), v)

            def location(b: Any, f: Any, r: Any, first: int = number * features) -> list[Any]:
                return [b, f + first, r]

            p.generic(
                "ppp",
                [blocks, features, block],
                [(whole, lambda b, f, r: [b * block + r, f])],
                [(p.outputs[0], location)],
                filled,
            )

    shape = (blocks, len(fills) * features, block)
    return c.g.call("feature_blocks", [x], [(shape, dtype)], build)[0]


def masked_leaves(c: OpContext, x: SSAValue, trees: MaskedTrees) -> SSAValue:
    """Returns the number of the leaf in each tree that each sample of ``x``, in blocks, ends in: uint8 (blocks, trees,
    rows of a block).
    """
    blocks, held, block = c.shape(x)
    count, inner = trees.mask.shape
    bits = str(trees.mask.dtype)
    shape = (blocks, count, block)

    def build(p: PrimBuilder) -> None:
        left = p.temp(shape, bits)

        def test(s: ScalarBuilder, left: Value, feature: Value, value: Value, mask: Value) -> Value:
            given = s.load(p.inputs[0], [s.index(0), _within(s, feature, held), s.index(2)], value.dtype)
            return left & s.select(given <= value, s.const(-1, bits), mask)

        tables = [(p.inputs[i], lambda b, t, r, n: [t, n]) for i in (1, 2, 3)]
        p.generic("pppr", [*shape, inner], tables, [(left, lambda b, t, r, n: [b, t, r])], test, init=-1)

        def lowest(s: ScalarBuilder, left: Value) -> Value:
            wide = bits == "int64"
            number = s.cast(left & s.neg(left), "float64" if wide else "float32")
            exponent = s.binary("shr", s.bits(number), 52 if wide else 23) & (2047 if wide else 255)
            return s.cast(exponent - (1023 if wide else 127), "uint8")

        p.generic("ppp", shape, [(left, lambda *d: d)], [(p.outputs[0], lambda *d: d)], lowest)

    operands = [x, *(_table(c, table) for table in (trees.feature, trees.value, trees.mask))]
    return c.g.call("tree_leaves", operands, [(shape, "uint8")], build)[0]


def votes_of_leaves(c: OpContext, leaves: SSAValue, votes: Array, kind: str) -> SSAValue:
    """Returns the votes of the samples' leaves for each target, combined by ``kind`` ("add", "min", "max"): float64
    (rows in blocks, targets). ``votes`` (trees, leaves, targets) has the leaves of each tree.
    """
    (blocks, count, block), targets = c.shape(leaves), votes.shape[-1]
    along_targets = targets >= _MANY_TARGETS
    shape = (blocks, block, targets) if along_targets else (blocks, targets, block)

    def build(p: PrimBuilder) -> None:
        target = 2 if along_targets else 1

        def vote(s: ScalarBuilder, total: Value, leaf: Value) -> Value:
            number = [s.index(3), _within(s, leaf, votes.shape[-2]), s.index(target)]
            return s.binary(kind, total, s.load(p.inputs[1], number, "float64"))

        def read(b: Any, i: Any, j: Any, t: Any) -> list[Any]:
            return [b, t, i if along_targets else j]

        out = (p.outputs[0], lambda *d: d[:3])
        p.generic("pppr", [*shape, count], [(p.inputs[0], read)], [out], vote, init=_INITS[kind])

    found = c.g.call("tree_votes", [leaves, _table(c, votes)], [(shape, "float64")], build)[0]
    if not along_targets:
        found = c.value(c.transpose(found, [0, 2, 1]))
    return c.g.reshape(found, (blocks * block, targets))


def votes_of_targets(c: OpContext, leaves: SSAValue, votes: Array, kind: str) -> SSAValue:
    """Returns votes as ``votes_of_leaves``, for trees that vote for one target each: ``votes`` (targets, trees, leaves)
    has the trees of the first target first, and so on.
    """
    blocks, _, block = c.shape(leaves)
    targets, count, held = votes.shape

    def build(p: PrimBuilder) -> None:
        def vote(s: ScalarBuilder, total: Value, leaf: Value) -> Value:
            number = [s.index(1), s.index(3), _within(s, leaf, held)]
            return s.binary(kind, total, s.load(p.inputs[1], number, "float64"))

        read = (p.inputs[0], lambda b, k, r, t: [b, k * count + t, r])
        out = (p.outputs[0], lambda b, k, r, t: [b, k, r])
        p.generic("pppr", [blocks, targets, block, count], [read], [out], vote, init=_INITS[kind])

    found = c.g.call("tree_votes", [leaves, _table(c, votes)], [((blocks, targets, block), "float64")], build)[0]
    return c.g.reshape(c.value(c.transpose(found, [0, 2, 1])), (blocks * block, targets))


def _within(s: ScalarBuilder, number: Value, extent: int) -> Value:
    """Returns ``number``, which tables hold, as an index that provably is below ``extent``."""
    return s.cast(s.minimum(s.maximum(s.cast(number, "int64"), 0), extent - 1), "index")


def _table(c: OpContext, table: Array) -> SSAValue:
    return c.g.constant(np.ascontiguousarray(table), c.g.node)
