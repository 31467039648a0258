"""The nodes of ensembles of decision trees of ``ai.onnx.ml``, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from landbridge.ops.context import Array
from landbridge.records import record

#: The tests that a node may make, by the number it has in ``TreeNodes.mode``.
LEAF, LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(8)
_MODES = ("LEAF", "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")


@record(frozen=True, eq=False)
class TreeNodes:
    """The nodes of all trees, and the votes of each leaf for each target.

    ``value``: the number that features are compared with, in the dtype of the comparison. ``yes`` and ``no`` are the
    next nodes; ``missing``: NaN continues with ``yes``. ``members``, a row per node, are the numbers that a MEMBER node
    looks for, padded with NaN.
    """

    feature: Array
    value: Array
    mode: Array
    missing: Array
    yes: Array
    no: Array
    roots: Array
    votes: Array
    has_vote: Array
    members: Array

    def comparing(self, dtype: Any) -> Self:
        """Returns the trees with values in the dtype in which samples of ``dtype`` are compared: doubles are compared
        with the exact values of floats.
        """
        wide = np.dtype(dtype) == np.float64 and self.value.dtype != np.float64
        return replace(self, value=self.value.astype(np.float64)) if wide else self


def of_nodes(a: Mapping[str, Any], prefix: str, targets: int) -> TreeNodes:
    """Reads the trees of TreeEnsembleRegressor and TreeEnsembleClassifier, whose nodes have numbers and may be
    leaves.
    """
    keys = list(zip(a["nodes_treeids"], a["nodes_nodeids"], strict=True))
    number = {key: i for i, key in enumerate(keys)}
    count = len(keys)
    yes, no = (
        [number.get((tree, node), i) for i, (tree, node) in enumerate(zip(a["nodes_treeids"], ids, strict=True))]
        for ids in (a["nodes_truenodeids"], a["nodes_falsenodeids"])
    )
    votes, has_vote = np.zeros((count, targets)), np.zeros((count, targets), bool)
    weights = _listed(a, f"{prefix}_weights")
    for tree, node, target, weight in zip(
        a[f"{prefix}_treeids"], a[f"{prefix}_nodeids"], a[f"{prefix}_ids"], weights, strict=True
    ):
        votes[number[tree, node], target] += weight
        has_vote[number[tree, node], target] = True
    wide = "nodes_values_as_tensor" in a
    return TreeNodes(
        np.array(a["nodes_featureids"], np.int64),
        np.array(a["nodes_values_as_tensor"] if wide else a["nodes_values"], np.float64 if wide else np.float32),
        np.array([_MODES.index(mode) for mode in a["nodes_modes"]], np.int8),
        np.array(_given(a, "nodes_missing_value_tracks_true", [0] * count), bool),
        np.array(yes),
        np.array(no),
        np.array(sorted({tree: i for i, (tree, _) in reversed(list(enumerate(keys)))}.values())),
        votes,
        has_vote,
        np.full((count, 1), np.nan),
    )


def of_branches(a: Mapping[str, Any], targets: int) -> TreeNodes:
    """Reads the trees of TreeEnsemble, whose leaves are separate: they become nodes after the others."""
    splits = np.asarray(a["nodes_splits"])
    dtype = splits.dtype if splits.dtype.kind == "f" and splits.dtype.itemsize > 2 else np.dtype(np.float32)
    inner, weights = len(a["nodes_featureids"]), np.array(a["leaf_weights"], np.float64)
    count = inner + len(weights)
    owned = np.arange(inner, count)

    def after(ids: Sequence[int], are_leaves: Sequence[int]) -> Array:
        return np.concatenate([np.array(ids) + inner * np.array(are_leaves, bool), owned])

    def padded(values: Sequence[float] | Array) -> Array:
        return np.concatenate([np.array(values), np.zeros(len(weights))])

    votes, has_vote = np.zeros((count, targets)), np.zeros((count, targets), bool)
    votes[owned, a["leaf_targetids"]] = weights
    has_vote[owned, a["leaf_targetids"]] = True
    mode = padded(np.asarray(a["nodes_modes"], np.int64) + 1).astype(np.int8)
    return TreeNodes(
        padded(a["nodes_featureids"]).astype(np.int64),
        padded(splits).astype(dtype),
        mode,
        padded(_given(a, "nodes_missing_value_tracks_true", [0] * inner)).astype(bool),
        after(a["nodes_truenodeids"], a["nodes_trueleafs"]),
        after(a["nodes_falsenodeids"], a["nodes_falseleafs"]),
        np.array(a["tree_roots"]),
        votes,
        has_vote,
        _members(mode, _given(a, "membership_values", [])),
    )


def _members(mode: Array, values: Sequence[float] | Array) -> Array:
    """Returns a row for each node with what it looks for: ``values`` has those of each BRANCH_MEMBER, a NaN after
    each.
    """
    sets: list[list[float]] = [[]]
    for value in values:
        if np.isnan(value):
            sets.append([])
        else:
            sets[-1].append(value)
    created = np.full((len(mode), max(1, *map(len, sets)) if sets else 1), np.nan)
    for node, each in zip(np.flatnonzero(mode == MEMBER), sets, strict=False):
        created[node, : len(each)] = each
    return created


def _given(a: Mapping[str, Any], name: str, otherwise: Sequence[float]) -> Sequence[float] | Array:
    """Returns a list or tensor of numbers; ``otherwise`` where there is none, or nothing in it."""
    found = a.get(name)
    return otherwise if found is None or not len(found) else found


def _listed(a: Mapping[str, Any], name: str) -> Sequence[float] | Array:
    """Returns numbers that a node has as a list of floats, or as a tensor of doubles."""
    return _given(a, name, a.get(f"{name}_as_tensor", ()))
