"""Ensembles of decision trees of ``ai.onnx.ml`` as kernels: TreeEnsemble, and its forms before opset 5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from xdsl.ir import SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.errors import NodeError, ShapeError
from landbridge.operators import kernel
from landbridge.ops.accuracy import SUMS, accuracy
from landbridge.ops.class_scores import kernel_of, label_of, of_two, transformed
from landbridge.ops.context import Array, OpContext, Operand
from landbridge.ops.rules import rules
from landbridge.ops.slicing import part
from landbridge.ops.tree_kernels import feature_blocks, masked_leaves, votes_of_leaves, votes_of_targets
from landbridge.ops.tree_nodes import LEAF, TreeNodes, of_branches, of_nodes
from landbridge.ops.tree_tests import TreeTests, masked, spoken_of
from landbridge.ops.tree_walk import TOGETHER, votes_of_nodes, walked_leaves
from landbridge.ops.walked_trees import WalkedTrees, walked
from landbridge.records import record
from landbridge.sizes.size import Extent, largest

_ML = "ai.onnx.ml"
#: What the numbers of TreeEnsemble mean.
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
#: Trees that there may be for each of those of a file, so that each target has as many.
_MOST_PADDED = 2
#: What votes are combined from.
_INITS = {"add": 0.0, "min": np.inf, "max": -np.inf}


class _Ends(Protocol):
    """The leaves in which samples end in each tree."""

    def votes(self, c: OpContext, votes: Array, speaks: Array, kind: str = "add") -> SSAValue:
        """Returns the combined votes of the leaves: float64 (rows, targets). ``votes`` (nodes, targets) has the vote of
        each node, where ``speaks`` is set.
        """

    def are_always_spoken_of(self, nodes: TreeNodes) -> bool:
        """Returns whether each target has a tree all of whose leaves vote for it."""


@record(frozen=True, eq=False)
class _MaskedEnds:
    """The leaves of ``rows`` samples, padded to whole blocks.

    If ``targets`` is not 0, the trees consist of that many consecutive parts, and each part votes for one target; 0 if
    leaves vote for several targets, or all for one.
    """

    leaves: SSAValue
    nodes: Array
    rows: Extent
    targets: int

    def votes(self, c: OpContext, votes: Array, speaks: Array, kind: str = "add") -> SSAValue:
        voted = np.where(speaks, votes, _INITS[kind])
        voted = np.where(self.nodes[..., None] < 0, _INITS[kind], voted[self.nodes])
        if self.targets:
            parts = voted.reshape(self.targets, -1, *voted.shape[1:])
            votes_of_own = np.stack([part[..., target] for target, part in enumerate(parts)])
            found = votes_of_targets(c, self.leaves, votes_of_own, kind)
        else:
            found = votes_of_leaves(c, self.leaves, voted, kind)
        return c.g.reshape(found, (self.rows, voted.shape[-1]))

    def are_always_spoken_of(self, nodes: TreeNodes) -> bool:
        spoken = np.asarray((nodes.has_vote[self.nodes] | (self.nodes < 0)[..., None]).all(1))
        return bool(spoken[(self.nodes >= 0).any(1)].any(0).all())


@record(frozen=True, eq=False)
class _WalkedEnds:
    """Numbers of nodes of ``trees``, of ``rows`` samples."""

    leaves: SSAValue
    rows: Extent
    trees: WalkedTrees

    def votes(self, c: OpContext, votes: Array, speaks: Array, kind: str = "add") -> SSAValue:
        return votes_of_nodes(c, self.leaves, self.rows, self.trees, votes, speaks, kind)

    def are_always_spoken_of(self, nodes: TreeNodes) -> bool:
        return bool(nodes.has_vote[nodes.mode == LEAF].all())


def _ends(c: OpContext, x: Operand, nodes: TreeNodes) -> _Ends:
    """Returns the leaves in which ``x`` ends in trees of ``nodes``."""
    (rows, features), nodes = c.shape(x), nodes.comparing(numpy_dtype(c.dtype(x)))
    tests = TreeTests.of(nodes)
    if not len(nodes.roots):
        raise NodeError(f"{c.op_type} node {c.g.node!r} has no tree; legal is at least one")
    least, most = tests.feature.min(), tests.feature.max()
    if least < 0 or (isinstance(features, int) and most >= features):
        tested = most if least >= 0 else least
        raise ShapeError(f"{c.op_type} node {c.g.node!r} tests feature {tested} of samples that have {features}")
    compared = c.value(c.cast(x, str(nodes.value.dtype)))
    few = _few_leaves(c, compared, tests, nodes) if isinstance(features, int) else None
    if few is not None:
        return few
    c.g.held("how many features a sample has", features, largest(features, int(most) + 1))
    trees = walked(tests, tests.feature, TOGETHER)
    if trees is None:
        raise NodeError(f"{c.op_type} node {c.g.node!r} has a node that follows itself; legal are trees, with leaves")
    trees = replace(trees, nodes=np.where(trees.nodes < 0, -1, tests.votes_of[trees.nodes]))
    return _WalkedEnds(walked_leaves(c, compared, trees), rows, trees)


def _few_leaves(c: OpContext, x: SSAValue, tests: TreeTests, nodes: TreeNodes) -> _MaskedEnds | None:
    """Returns the leaves in which ``x`` ends in trees of few leaves; None for others, and for tests of equality or of
    NaN.
    """
    rows, features = c.shape(x)
    if tests.equal.any() or np.isnan(tests.value[~tests.is_leaf]).any():
        return None
    # NaN is compared as such, or as a number that is less than others.
    keeps_nan = tests.is_leaf | ~tests.nan_first
    fills: list[float | None] = [None, -np.inf]
    used_fills = [
        fill for fill, used in zip(fills, (keeps_nan[~tests.is_leaf].any(), not keeps_nan.all()), strict=True) if used
    ]
    column = tests.feature + np.where(keeps_nan, 0, features) * (len(used_fills) == 2)
    targets, roots = _by_target(tests, nodes)
    trees = masked(tests, roots, column)
    if trees is None:
        return None
    blocks = feature_blocks(c, x, used_fills or [None])
    return _MaskedEnds(masked_leaves(c, blocks, trees), trees.leaves, rows, targets)


def _by_target(tests: TreeTests, nodes: TreeNodes) -> tuple[int, Array]:
    """Returns how many targets have trees of their own, and the trees in that order, -1 for those that some have fewer
    of.
    """
    targets = nodes.votes.shape[1]
    spoken = [spoken_of(tests, int(root), nodes.has_vote) for root in tests.roots] if targets > 1 else []
    if not spoken or any(each is None for each in spoken):
        return 0, tests.roots
    of = np.array(spoken)
    most = int(np.bincount(of, minlength=targets).max())
    if most * targets > _MOST_PADDED * len(of):
        return 0, tests.roots
    found = np.full((targets, most), -1)
    for target in range(targets):
        owned = tests.roots[of == target]
        found[target, : len(owned)] = owned
    return targets, found.reshape(-1)


def _aggregated(c: OpContext, ends: _Ends, nodes: TreeNodes, how: str) -> SSAValue:
    """Returns the combined votes of the trees for each target: float64 (rows, targets)."""
    if how in ("SUM", "AVERAGE"):
        return ends.votes(c, nodes.votes / (len(nodes.roots) if how == "AVERAGE" else 1), nodes.has_vote)
    found = ends.votes(c, nodes.votes, nodes.has_vote, how.lower())
    return c.value(c.elementwise("spoken_of", [found], lambda s, v: s.select(s.math("abs", v).eq(np.inf), 0.0, v)))


@rules("X: N C")
@kernel(_ML, "TreeEnsemble", since=5)
@accuracy(SUMS)
def tree_ensemble(c: OpContext, x: Operand) -> Operand:
    """Returns the combined votes of the trees for each target, in the dtype of the samples. Votes are added in
    float64.
    """
    transform = kernel_of(c, _TRANSFORMS[c.attribute("post_transform", 0)])
    nodes = of_branches(c.attributes, c.attribute("n_targets", 1))
    total = _aggregated(c, _ends(c, x, nodes), nodes, _AGGREGATES[c.attribute("aggregate_function", 1)])
    return c.cast(transformed(c, total, transform), c.dtype(x))


@rules("X: N C")
@kernel(_ML, "TreeEnsembleRegressor")
@accuracy(SUMS)
def tree_ensemble_regressor(c: OpContext, x: Operand) -> Operand:
    """Computes the sum, mean, minimum or maximum of the votes of the trees for each target, in float64."""
    transform = kernel_of(c, c.attribute("post_transform", "NONE"))
    nodes = of_nodes(c.attributes, "target", c.attribute("n_targets", 1))
    total = _aggregated(c, _ends(c, x, nodes), nodes, c.attribute("aggregate_function", "SUM"))
    scores = _with_base(c, total, _base(c))
    return c.cast(transformed(c, scores, transform), "float32")


@rules("X: N C")
@kernel(_ML, "TreeEnsembleClassifier")
@accuracy(SUMS)
def tree_ensemble_classifier(c: OpContext, x: Operand) -> Sequence[Operand]:
    """Computes the class that the trees vote for most, and the scores of all, which are computed in float64."""
    labels, ids = c.attribute("classlabels_int64s", []), sorted(set(c.attribute("class_ids", [])))
    if not labels or not ids:
        raise c.unsupported("its labels are text, or no leaf has a class")
    transform = kernel_of(c, c.attribute("post_transform", "NONE"))
    nodes = of_nodes(c.attributes, "class", max(len(labels), ids[-1] + 1))
    ends, base = _ends(c, x, nodes), _base(c)
    total = ends.votes(c, nodes.votes, nodes.has_vote)
    if len(labels) == 2 and len(ids) == 1:
        one = _with_base(c, part(c, total, [0, ids[0]], [1, 1], [c.shape(x)[0], 1]), base[-1:])
        return of_two(c, one, labels, transform, 0.5 if nodes.votes.min(initial=0) >= 0 else 0.0)
    scores = _with_base(c, total, base)
    voted: Operand = scores
    if not ends.are_always_spoken_of(nodes):
        spoken = ends.votes(c, nodes.has_vote, nodes.has_vote)
        voted = c.elementwise("spoken_of", [scores, spoken], lambda s, v, n: s.select(n > 0.0, v, -np.inf))
    return label_of(c, voted, labels), c.cast(transformed(c, scores, transform), "float32")


def _base(c: OpContext) -> list[float]:
    """Returns the number added to the votes: one for each target, or one for all."""
    for name in ("base_values", "base_values_as_tensor"):
        given = c.attributes.get(name)
        if given is not None and len(given):
            return [float(each) for each in given]
    return [0.0]


def _with_base(c: OpContext, total: Operand, base: Sequence[float]) -> Operand:
    if not any(base):
        return total
    added = np.array(base[-c.shape(total)[1] :], np.float64)
    return c.elementwise("base_values", [total, added], lambda s, v, b: v + b)
