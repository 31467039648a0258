"""Ensembles of decision trees of ``ai.onnx.ml`` as kernels: TreeEnsemble, and its forms before opset 5."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.host_operators.tree_nodes import LEAF, TreeNodes, of_branches, of_nodes
from landbridge.ops.accuracy import SUMS, accuracy
from landbridge.ops.class_scores import kernel_of, label_of, of_two, transformed
from landbridge.ops.context import Array, OpContext, Operand
from landbridge.ops.registry import operator
from landbridge.ops.rules import rules
from landbridge.ops.slicing import part
from landbridge.ops.tree_kernels import feature_blocks, masked_leaves, votes_of_leaves, votes_of_targets, walked_leaves
from landbridge.ops.tree_tests import TreeTests, masked, spoken_of, walked
from landbridge.records import record
from landbridge.sizes.size import Extent

_ML = "ai.onnx.ml"
#: What the numbers of TreeEnsemble mean.
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
#: Trees that there may be for each of those of a file, so that each target has as many.
_MOST_PADDED = 2
#: What votes are combined from.
_INITS = {"add": 0.0, "min": np.inf, "max": -np.inf}


@record(frozen=True, eq=False)
class _Ends:
    """Where samples end in each tree, by numbers that ``nodes`` says the nodes of; of ``rows`` samples, and others up
    to a whole block.

    ``targets``: as many parts of the trees, one after the other, speak of a target each; 0 where leaves speak of
    several, or all of one."""

    leaves: SSAValue
    nodes: Array
    rows: Extent
    targets: int

    def votes(self, c: OpContext, of_nodes: Array, kind: str = "add") -> SSAValue:
        """What of ``of_nodes`` (nodes, targets) the leaves say together: float64 (rows, targets)."""
        votes = np.where(self.nodes[..., None] < 0, _INITS[kind], of_nodes[self.nodes])
        if self.targets:
            parts = votes.reshape(self.targets, -1, *votes.shape[1:])
            own = np.stack([part[..., target] for target, part in enumerate(parts)])
            found = votes_of_targets(c, self.leaves, own, kind)
        else:
            found = votes_of_leaves(c, self.leaves, votes, kind)
        return c.g.reshape(found, (self.rows, votes.shape[-1]))


def _ends(c: OpContext, x: Operand, nodes: TreeNodes) -> _Ends:
    """Where ``x`` ends; raises UnsupportedOperatorError for trees that these kernels are not for."""
    (rows, features), nodes = c.shape(x), nodes.comparing(numpy_dtype(c.dtype(x)))
    if not isinstance(features, int):
        raise c.unsupported("how many features a sample has is open")
    inner = nodes.mode != LEAF
    if nodes.feature[inner].max(initial=0) >= features or nodes.feature[inner].min(initial=0) < 0:
        raise c.unsupported(f"a node tests feature {nodes.feature.max()} of samples that have {features}")
    tests = TreeTests.of(nodes)
    if tests is None or not len(nodes.roots):
        raise c.unsupported("there is no tree, or a node compares with what nothing is less than")
    equal = bool(tests.equal.any())
    if equal and (inner & ~nodes.missing & (nodes.value == np.inf)).any():
        raise c.unsupported("a node tells infinity from NaN")
    # One of the two ways of NaN is that of a comparison with it; for the other it is a number.
    own = tests.is_leaf | (tests.nan_first == equal)
    fills: list[float | None] = [None, np.inf if equal else -np.inf]
    kept = [fill for fill, used in zip(fills, (own[~tests.is_leaf].any(), not own.all()), strict=True) if used]
    column = tests.feature + np.where(own, 0, features) * (len(kept) == 2)
    blocks = feature_blocks(c, c.value(c.cast(x, str(nodes.value.dtype))), kept or [None])
    targets, roots = (0, tests.roots) if equal else _by_target(tests, nodes)
    few = None if equal else masked(tests, roots, column)
    if few is not None:
        return _Ends(masked_leaves(c, blocks, few), few.leaves, rows, targets)
    many = walked(tests, tests.roots, column)
    if many is None:
        raise c.unsupported("a tree of more than a thousand levels, or one with no end")
    return _Ends(walked_leaves(c, blocks, many), tests.votes_of[many.nodes], rows, 0)


def _by_target(tests: TreeTests, nodes: TreeNodes) -> tuple[int, Array]:
    """How many targets have trees of their own, and the trees in that order, -1 for those that some have fewer of."""
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
        own = tests.roots[of == target]
        found[target, : len(own)] = own
    return targets, found.reshape(-1)


def _aggregated(c: OpContext, ends: _Ends, nodes: TreeNodes, how: str) -> SSAValue:
    """What the trees say of each target: float64 (rows, targets)."""
    if how in ("SUM", "AVERAGE"):
        votes = nodes.votes / (len(nodes.roots) if how == "AVERAGE" else 1)
        return ends.votes(c, votes)
    none = np.inf if how == "MIN" else -np.inf
    found = ends.votes(c, np.where(nodes.has_vote, nodes.votes, none), how.lower())
    return c.value(c.elementwise("spoken_of", [found], lambda s, v: s.select(s.math("abs", v).eq(np.inf), 0.0, v)))


@rules("X: N C")
@operator("TreeEnsemble", domain=_ML, since=5)
@accuracy(SUMS)
def tree_ensemble(c: OpContext, x: Operand) -> Operand:
    """What the trees say of each target, in the dtype of the samples. Votes are added in float64."""
    transform = kernel_of(c, _TRANSFORMS[c.attribute("post_transform", 0)])
    nodes = of_branches(c.attributes, c.attribute("n_targets", 1))
    total = _aggregated(c, _ends(c, x, nodes), nodes, _AGGREGATES[c.attribute("aggregate_function", 1)])
    return c.cast(transformed(c, total, transform), c.dtype(x))


@rules("X: N C")
@operator("TreeEnsembleRegressor", domain=_ML)
@accuracy(SUMS)
def tree_ensemble_regressor(c: OpContext, x: Operand) -> Operand:
    """The sum, mean, least or largest of what the trees say of each target, which is computed in float64."""
    transform = kernel_of(c, c.attribute("post_transform", "NONE"))
    nodes = of_nodes(c.attributes, "target", c.attribute("n_targets", 1))
    total = _aggregated(c, _ends(c, x, nodes), nodes, c.attribute("aggregate_function", "SUM"))
    scores = _with_base(c, total, _base(c))
    return c.cast(transformed(c, scores, transform), "float32")


@rules("X: N C")
@operator("TreeEnsembleClassifier", domain=_ML)
@accuracy(SUMS)
def tree_ensemble_classifier(c: OpContext, x: Operand) -> Sequence[Operand]:
    """The class that the trees vote for most, and the scores of all, which are computed in float64."""
    labels, ids = c.attribute("classlabels_int64s", []), sorted(set(c.attribute("class_ids", [])))
    if not labels or not ids:
        raise c.unsupported("its labels are text, or no leaf speaks of a class")
    transform = kernel_of(c, c.attribute("post_transform", "NONE"))
    nodes = of_nodes(c.attributes, "class", max(len(labels), ids[-1] + 1))
    ends, base = _ends(c, x, nodes), _base(c)
    total = ends.votes(c, nodes.votes)
    if len(labels) == 2 and len(ids) == 1:
        one = _with_base(c, part(c, total, [0, ids[0]], [1, 1], [c.shape(x)[0], 1]), base[-1:])
        return of_two(c, one, labels, transform, 0.5 if nodes.votes.min(initial=0) >= 0 else 0.0)
    scores = _with_base(c, total, base)
    voted: Operand = scores
    if not _is_always_spoken_of(ends, nodes):
        spoken = ends.votes(c, nodes.has_vote)
        voted = c.elementwise("spoken_of", [scores, spoken], lambda s, v, n: s.select(n > 0.0, v, -np.inf))
    return label_of(c, voted, labels), c.cast(transformed(c, scores, transform), "float32")


def _is_always_spoken_of(ends: _Ends, nodes: TreeNodes) -> bool:
    """Whether a tree speaks of each target in all of its leaves."""
    if ends.nodes.ndim < 2:  # leaves of all trees in one row
        return bool(nodes.has_vote[nodes.mode == LEAF].all())
    spoken = np.asarray((nodes.has_vote[ends.nodes] | (ends.nodes < 0)[..., None]).all(1))
    return bool(spoken[(ends.nodes >= 0).any(1)].any(0).all())


def _base(c: OpContext) -> list[float]:
    """What is added to the votes: a number for each target, or one for all."""
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
