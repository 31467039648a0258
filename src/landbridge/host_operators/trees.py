"""Ensembles of decision trees of ``ai.onnx.ml``: all samples and trees go down one level at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from landbridge.errors import NodeError
from landbridge.host_operators.linear_models import class_results, classified, scores_of
from landbridge.host_operators.registry import Array, Draw, HostValue, Results, host_operator

_MODES = ("LEAF", "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


class _Trees:
    """The nodes of all trees in arrays, and what each leaf votes for each of ``targets``."""

    def __init__(self, attributes: Mapping[str, Any], of: str, targets: int) -> None:
        a = attributes
        keys = list(zip(a["nodes_treeids"], a["nodes_nodeids"], strict=True))
        number = {key: i for i, key in enumerate(keys)}
        self.feature = np.array(a["nodes_featureids"], np.int64)
        self.value = np.array(a["nodes_values"], np.float32)
        self.mode = np.array([_MODES.index(mode) for mode in a["nodes_modes"]], np.int8)
        self.missing = np.array(a.get("nodes_missing_value_tracks_true") or [0] * len(keys), bool)
        own = range(len(keys))
        self.yes, self.no = (
            np.array(
                [
                    number.get((tree, n), i)
                    for i, (tree, n) in zip(own, zip(a["nodes_treeids"], ids, strict=True), strict=True)
                ]
            )
            for ids in (a["nodes_truenodeids"], a["nodes_falsenodeids"])
        )
        self.roots = np.array(sorted({tree: i for i, (tree, _) in reversed(list(enumerate(keys)))}.values()))
        self.votes = np.zeros((len(keys), targets))
        self.has_vote = np.zeros((len(keys), targets), bool)
        for tree, node, target, weight in zip(
            a[f"{of}_treeids"], a[f"{of}_nodeids"], a[f"{of}_ids"], a[f"{of}_weights"], strict=True
        ):
            self.votes[number[tree, node], target] += weight
            self.has_vote[number[tree, node], target] = True

    def leaves(self, x: Array) -> Array:
        """The leaf that each sample ends in, a column a tree."""
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
                ],
            )
            taken |= np.isnan(given) & self.missing[at]
            at = np.where(mode == 0, at, np.where(taken, self.yes[at], self.no[at]))
        return at


def _aggregated(trees: _Trees, x: Array, how: str) -> Array:
    at = trees.leaves(x)
    votes = trees.votes[at]
    if how in ("MIN", "MAX"):
        worst = np.inf if how == "MIN" else -np.inf
        votes = np.where(trees.has_vote[at], votes, worst)
        found = votes.min(1) if how == "MIN" else votes.max(1)
        return np.where(np.isfinite(found), found, 0)
    total = votes.sum(1)
    return np.asarray(total / len(trees.roots) if how == "AVERAGE" else total)


def _regressor_results(x: HostValue, *, n_targets: int = 1, **_: Any) -> Results:
    return [((x.shape[0], n_targets), "float32")]


@host_operator("ai.onnx.ml", "TreeEnsembleRegressor", results=_regressor_results, in_order=True)
def tree_ensemble_regressor(**attributes: Any) -> Draw:
    """The sum, mean, least or largest of what the trees say of each target."""
    trees = _Trees(attributes, "target", attributes.get("n_targets", 1))
    base = np.array(attributes.get("base_values") or [0.0])

    def run(x: Array) -> Array:
        scores = _aggregated(trees, _rows(x), attributes.get("aggregate_function", "SUM")) + base
        return scores_of(scores, attributes.get("post_transform", "NONE")).astype(np.float32)

    return run


@host_operator("ai.onnx.ml", "TreeEnsembleClassifier", results=class_results, in_order=True)
def tree_ensemble_classifier(**attributes: Any) -> Draw:
    """The class that the trees vote for most, and the scores of all."""
    labels: Sequence[int] = attributes["classlabels_int64s"]
    ids = set(attributes["class_ids"])
    trees = _Trees(attributes, "class", max(len(labels), max(ids) + 1))
    base = np.array(attributes.get("base_values") or [0.0])
    positive = min(attributes["class_weights"], default=0) >= 0
    binary = len(labels) == 2 and len(ids) == 1

    def run(x: Array) -> tuple[Array, Array]:
        at = trees.leaves(_rows(x))
        scores = trees.votes[at].sum(1)
        if binary:
            scores = scores[:, [next(iter(ids))]]
        scores = scores + base[-scores.shape[1] :]
        transform = attributes.get("post_transform", "NONE")
        if binary:
            return classified(scores, labels, transform, 0.5 if positive else 0.0)
        voted = np.where(trees.has_vote[at].any(1), scores, -np.inf)  # of classes that a leaf speaks of
        return np.array(labels, np.int64)[voted.argmax(1)], scores_of(scores, transform).astype(np.float32)

    return run


def _rows(x: Array) -> Array:
    if x.ndim != 2:
        raise NodeError(f"samples of shape {x.shape}; a row a sample is legal")
    return x.astype(np.float32)
