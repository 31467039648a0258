"""Ensembles of decision trees of ``ai.onnx.ml``: where samples end, and what the leaves vote for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from landbridge.errors import NodeError
from landbridge.host_operators.linear_models import class_results, classified, scores_of
from landbridge.host_operators.registry import Array, Draw, HostValue, Results, host_operator
from landbridge.host_operators.tree_descent import Descent
from landbridge.host_operators.tree_nodes import MEMBER, TreeNodes, of_branches, of_nodes
from landbridge.locks import cached_property
from landbridge.records import record

#: What the numbers of TreeEnsemble mean.
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@record(frozen=True, eq=False)
class _SingleVotes:
    """What each leaf votes for the one target that its tree speaks of, twice for each node, and for each target which
    trees, as a Descent orders them, speak of it."""

    votes: Array
    is_of: Array


@record(frozen=True, eq=False)
class _Trees(TreeNodes):
    """Trees, and ways down them."""

    @classmethod
    def of(cls, nodes: TreeNodes) -> _Trees:
        """Those of ``nodes``."""
        return cls(**vars(nodes))

    @cached_property
    def wide(self) -> _Trees:
        """Those that doubles go down."""
        return self.comparing(np.float64)

    @cached_property
    def descent(self) -> Descent | None:
        """The quick way down; None where a node looks for members."""
        if (self.mode == MEMBER).any():
            return None
        return Descent.of(self.feature, self.value, self.mode, self.missing, self.yes, self.no, self.roots)

    @cached_property
    def single(self) -> _SingleVotes | None:
        """What each leaf says where all of a tree speak of one target; None where they speak of several."""
        descent = self.descent
        voted = self.has_vote.sum(1)
        if descent is None or voted.max(initial=0) > 1:
            return None
        target = np.where(voted, self.has_vote.argmax(1), -1)
        leaves = self._leaves_of_trees()
        of_tree = np.full(len(self.roots), -1)
        np.maximum.at(of_tree, leaves[1], target[leaves[0]])
        if not (target[leaves[0]] == of_tree[leaves[1]]).all():
            return None
        is_of = of_tree[descent.order] == np.arange(self.votes.shape[1])[:, None]
        return _SingleVotes(np.repeat(self.votes.sum(1), 2), is_of.astype(np.float64))

    def _leaves_of_trees(self) -> tuple[Array, Array]:
        """Leaves that are reached, and the number of a tree that each is of."""
        nodes, tree = self.roots, np.arange(len(self.roots))
        found: list[tuple[Array, Array]] = []
        for _ in range(len(self.mode) + 1):
            ends = self.mode[nodes] == 0
            found.append((nodes[ends], tree[ends]))
            nodes, tree = nodes[~ends], tree[~ends]
            if not len(nodes):
                break
            following = np.concatenate([self.yes[nodes], self.no[nodes]]), np.concatenate([tree, tree])
            pairs = np.unique(np.stack(following, 1), axis=0)
            nodes, tree = pairs[:, 0], pairs[:, 1]
        return np.concatenate([each[0] for each in found]), np.concatenate([each[1] for each in found])

    def total(self, x: Array) -> Array:
        """The sum of what the trees say of each target, a row a sample."""
        total = np.empty((len(x), self.votes.shape[1]))
        for part, at in self._ends(x):
            if self.single is not None:
                total[part] = (self.single.is_of @ self.single.votes.take(at, mode="clip")).T
            else:
                total[part] = self.votes[at >> 1].sum(0)
        return total

    def spoken_of(self, x: Array) -> Array:
        """Whether a leaf that a sample ends in speaks of a target, a row a sample."""
        found = np.empty((len(x), self.votes.shape[1]), bool)
        for part, at in self._ends(x):
            single = self.single
            found[part] = self.has_vote[at >> 1].any(0) if single is None else single.is_of.any(1)
        return found

    def _ends(self, x: Array) -> Iterator[tuple[slice, Array]]:
        """Samples and twice the leaf that each ends in, a row a tree."""
        if self.descent is not None:
            yield from self.descent.leaves(x)
        else:
            yield slice(None), 2 * self.leaves(x).T

    def leaves(self, x: Array) -> Array:
        """The leaf that each sample ends in, a column a tree."""
        if self.descent is not None:
            ends = np.empty((len(x), len(self.roots)), np.intp)
            for part, found in self.descent.leaves(x):
                ends[part, self.descent.order] = found.T >> 1
            return ends
        at = np.broadcast_to(self.roots, (len(x), len(self.roots))).copy()
        rows = np.arange(len(x))[:, None]
        for _ in range(len(self.feature)):
            mode = self.mode[at]
            if not mode.any():
                break
            given, value = x[rows, self.feature[at]], self.value[at]
            taken = np.choose(
                mode,
                [
                    mode < 0,
                    given <= value,
                    given < value,
                    given >= value,
                    given > value,
                    given == value,
                    given != value,
                    (given[..., None] == self.members[at]).any(-1),
                ],
            )
            taken |= np.isnan(given) & self.missing[at]
            at = np.where(mode == 0, at, np.where(taken, self.yes[at], self.no[at]))
        return at


def _aggregated(trees: _Trees, samples: Array, how: str) -> Array:
    trees, x = _compared(trees, samples)
    if how in ("MIN", "MAX"):
        at = trees.leaves(x)
        votes = trees.votes[at]
        worst = np.inf if how == "MIN" else -np.inf
        votes = np.where(trees.has_vote[at], votes, worst)
        found = votes.min(1) if how == "MIN" else votes.max(1)
        return np.where(np.isfinite(found), found, 0)
    total = trees.total(x)
    return np.asarray(total / len(trees.roots) if how == "AVERAGE" else total)


def _regressor_results(x: HostValue, *, n_targets: int = 1, **_: Any) -> Results:
    return [((x.shape[0], n_targets), "float32")]


@host_operator("ai.onnx.ml", "TreeEnsembleRegressor", results=_regressor_results, in_order=True)
def tree_ensemble_regressor(**attributes: Any) -> Draw:
    """The sum, mean, least or largest of what the trees say of each target."""
    trees = _Trees.of(of_nodes(attributes, "target", attributes.get("n_targets", 1)))
    base = np.array(attributes.get("base_values") or attributes.get("base_values_as_tensor") or [0.0])

    def run(x: Array) -> Array:
        scores = _aggregated(trees, x, attributes.get("aggregate_function", "SUM")) + base
        return scores_of(scores, attributes.get("post_transform", "NONE")).astype(np.float32)

    return run


@host_operator("ai.onnx.ml", "TreeEnsembleClassifier", results=class_results, in_order=True)
def tree_ensemble_classifier(**attributes: Any) -> Draw:
    """The class that the trees vote for most, and the scores of all."""
    labels: Sequence[int] = attributes["classlabels_int64s"]
    ids = set(attributes["class_ids"])
    trees = _Trees.of(of_nodes(attributes, "class", max(len(labels), max(ids) + 1)))
    base = np.array(attributes.get("base_values") or attributes.get("base_values_as_tensor") or [0.0])
    positive = trees.votes.min(initial=0) >= 0
    binary = len(labels) == 2 and len(ids) == 1

    def run(x: Array) -> tuple[Array, Array]:
        own, rows = _compared(trees, x)
        scores = own.total(rows)
        if binary:
            scores = scores[:, [next(iter(ids))]]
        scores = scores + base[-scores.shape[1] :]
        transform = attributes.get("post_transform", "NONE")
        if binary:
            return classified(scores, labels, transform, 0.5 if positive else 0.0)
        voted = np.where(own.spoken_of(rows), scores, -np.inf)  # of classes that a leaf speaks of
        return np.array(labels, np.int64)[voted.argmax(1)], scores_of(scores, transform).astype(np.float32)

    return run


def _ensemble_results(x: HostValue, *, n_targets: int = 1, **_: Any) -> Results:
    return [((x.shape[0], n_targets), x.dtype)]


@host_operator("ai.onnx.ml", "TreeEnsemble", since=5, results=_ensemble_results, in_order=True)
def tree_ensemble(
    *, n_targets: int = 1, aggregate_function: int = 1, post_transform: int = 0, **attributes: Any
) -> Draw:
    """What the trees say of each target, in the dtype of the samples."""
    trees = _Trees.of(of_branches(attributes, n_targets))
    how, transform = _AGGREGATES[aggregate_function], _TRANSFORMS[post_transform]
    return lambda x: scores_of(_aggregated(trees, x, how), transform).astype(x.dtype)


def _compared(trees: _Trees, x: Array) -> tuple[_Trees, Array]:
    """The trees that ``x`` goes down, and ``x`` in the dtype that they compare in."""
    if x.ndim != 2:
        raise NodeError(f"samples of shape {x.shape}; a row a sample is legal")
    trees = trees.wide if x.dtype == np.float64 else trees
    return trees, x.astype(trees.value.dtype)
