"""Kernels of decision trees, against onnxruntime."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb

Array = np.ndarray[Any, Any]


class _Forest:
    """Attributes of trees that are made node by node."""

    def __init__(self, of: str, seed: int, features: int) -> None:
        self.of, self.rng, self.features = of, np.random.default_rng(seed), features
        self.nodes: list[tuple[Any, ...]] = []
        self.votes: list[tuple[int, int, int, float]] = []

    def tree(self, leaves: int, modes: list[str], votes: int, targets: list[int], *, chain: bool = False) -> None:
        """A tree of ``leaves``, each of which votes for ``votes`` of ``targets``."""
        tree, pending, made = len({node[0] for node in self.nodes}), [(0, leaves)], 1
        while pending:
            node, below = pending.pop()
            value = float(np.float32(np.round(self.rng.standard_normal() * 4) / 4))
            feature, missing = int(self.rng.integers(self.features)), int(self.rng.integers(2))
            if below == 1:
                self.nodes.append((tree, node, 0, 0.0, "LEAF", 0, 0, 0))
                for target in self.rng.permutation(targets)[:votes]:
                    self.votes.append((tree, node, int(target), float(np.float32(self.rng.standard_normal()))))
                continue
            first = 1 if chain else int(self.rng.integers(1, below))
            mode = modes[int(self.rng.integers(len(modes)))]
            self.nodes.append((tree, node, feature, value, mode, made, made + 1, missing))
            pending += [(made, first), (made + 1, below - first)]
            made += 2

    def attributes(self) -> dict[str, Any]:
        names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
                 "missing_value_tracks_true")  # fmt: skip
        found: dict[str, Any] = {
            f"nodes_{n}": list(c) for n, c in zip(names, zip(*self.nodes, strict=True), strict=True)
        }
        columns = zip(*self.votes, strict=True)
        return found | {
            f"{self.of}_{n}": list(c) for n, c in zip(("treeids", "nodeids", "ids", "weights"), columns, strict=True)
        }


def model_of(
    op_type: str, x: Array, outputs: list[tuple[int, int]], opset: int = 3, features: int | str = 0, **attributes: Any
) -> onnx.ModelProto:
    """The model of one node; ``features`` are those of ``x`` where nothing is given."""
    names = [f"y{i}" for i in range(len(outputs))]
    kind, made = onnx.helper.np_dtype_to_tensor_dtype(x.dtype), onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op_type, ["x"], names, "trees", domain="ai.onnx.ml", **attributes)],
        "g",
        [made("x", kind, ["N", features or x.shape[1]])],
        [made(n, t, [None] * rank) for n, (t, rank) in zip(names, outputs, strict=True)],
    )
    imports = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", opset)]
    return onnx.helper.make_model(graph, opset_imports=imports, ir_version=8)


def compiled(model: onnx.ModelProto) -> lb.Session:
    """A Session of kernels alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", lb.FallbackWarning)
        return lb.Session(lb.compile(model))


def check(
    op_type: str, x: Array, outputs: list[tuple[int, int]], atol: float = 2e-6, rows: tuple[int, ...] = (), **node: Any
) -> None:
    """The node by kernels, for ``x``, its first row and so many ``rows``; ``outputs`` are (element type, rank)."""
    model = model_of(op_type, x, outputs, **node)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    peer = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    session = compiled(model)
    for count in (len(x), 1, *rows):
        some = x[:count]
        for found, wanted in zip(session(some), peer.run(None, {"x": some}), strict=True):
            # onnxruntime adds votes in float32, one after the other: 1e-6 is 8 of its roundings of sums of about 1.
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=2e-6, atol=atol)


def samples(rows: int, features: int, dtype: Any = np.float32) -> Array:
    """Numbers that are often equal to those that nodes compare with, zeros of both signs, infinities and NaN."""
    x = np.round(np.random.default_rng(rows).standard_normal((rows, features)) * 4) / 4
    x[::5, 0], x[::7, 1], x[1::9, 0], x[3::11, 2] = np.nan, -0.0, np.inf, -np.inf
    return x.astype(dtype)


ORDERED = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]
ALL = [*ORDERED, "BRANCH_EQ", "BRANCH_NEQ"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("leaves", "modes", "chain"),
    [
        ([1, 3, 32], ORDERED, False),  # a mask of 32 bits, and a tree of one node
        ([33, 64], ORDERED, True),  # one of 64
        ([5, 65], ORDERED, False),  # followed
        ([1, 90], ALL, True),  # followed by several kernels
    ],
)
def test_trees_of_all_shapes(leaves: list[int], modes: list[str], chain: bool) -> None:
    forest = _Forest("target", sum(leaves), 4)
    for count in leaves * 2:
        forest.tree(count, modes, 1, [0], chain=chain)
    check("TreeEnsembleRegressor", samples(70, 4), [(1, 2)], n_targets=1, base_values=[0.25], **forest.attributes())


@pytest.mark.sample(2)
@pytest.mark.parametrize(("votes", "trees"), [(1, [0, 1, 1, 2]), (1, [0, 0, 0, 1]), (2, [0, 1])])
@pytest.mark.parametrize("how", ["AVERAGE", "MIN"])
def test_targets(votes: int, trees: list[int], how: str) -> None:
    """Trees that speak of one target each, as many of each or not, and leaves that speak of several."""
    forest = _Forest("target", votes, 5)
    for target in trees:
        forest.tree(9, ORDERED, votes, [target] if votes == 1 else [0, 1, 2])
    check("TreeEnsembleRegressor", samples(40, 5), [(1, 2)], n_targets=3, aggregate_function=how, **forest.attributes())


def test_samples_of_doubles() -> None:
    """Which are compared with what floats say exactly: 0.1 is less than the float that is nearest."""
    forest = _Forest("target", 3, 4)
    forest.tree(20, ORDERED, 1, [0])
    attributes, x = forest.attributes(), np.random.default_rng(1).choice([0.1, float(np.float32(0.1)), -1, 1], (50, 4))
    attributes["nodes_values"] = [0.1] * len(attributes["nodes_values"])
    check("TreeEnsembleRegressor", x, [(1, 2)], n_targets=1, **attributes)


def test_samples_of_integers() -> None:
    forest = _Forest("class", 4, 4)
    forest.tree(20, ORDERED, 1, [0, 1, 2])
    x = np.random.default_rng(0).integers(-3, 4, (50, 4))
    check("TreeEnsembleClassifier", x, [(7, 1), (1, 2)], classlabels_int64s=[0, 1, 2], **forest.attributes())


@pytest.mark.parametrize(("classes", "votes"), [(3, 1), (5, 2), (5, 5)])
def test_classes_that_some_leaves_speak_of(classes: int, votes: int) -> None:
    """As forests have them: the weights are shares, and labels are where they are largest."""
    forest = _Forest("class", classes + votes, 4)
    for _ in range(4):
        forest.tree(12, ORDERED, votes, list(range(classes)))
    attributes = forest.attributes()
    attributes["class_weights"] = [abs(w) for w in attributes["class_weights"]]
    labels = [7, 3, 9, 1, 4][:classes]
    x = samples(60, 4)
    check("TreeEnsembleClassifier", x, [(7, 1), (1, 2)], classlabels_int64s=labels, **attributes)


def test_sets_of_members() -> None:
    """The tree of the operator's definition: numbers of a set go left, others are compared."""
    tensor = onnx.numpy_helper.from_array
    values = np.array([1.2, 3.7, 8, 9, np.nan, 12, 7, np.nan], np.float32)
    check(
        "TreeEnsemble", np.array([[1.2, 3.4, -0.12], [1.66, 4.14, 1.77], [12, 9, 3], [np.nan, 7, 0]], np.float32),
        [(1, 2)], opset=5, n_targets=2, aggregate_function=1,
        nodes_splits=tensor(np.array([np.nan, 3.14, np.nan], np.float32)),
        nodes_modes=tensor(np.array([6, 0, 6], np.uint8)),
        nodes_featureids=[0, 2, 1], nodes_truenodeids=[1, 0, 2], nodes_falsenodeids=[2, 1, 3],
        nodes_trueleafs=[0, 1, 1], nodes_falseleafs=[0, 1, 1], membership_values=tensor(values), tree_roots=[0],
        leaf_targetids=[0, 1, 0, 1], leaf_weights=tensor(np.array([5.23, 12.12, -12.23, 7.21], np.float32)),
    )  # fmt: skip


def full_trees(of: str, targets: int, seed: int = 7, depth: int = 4, count: int = 6) -> dict[str, Any]:
    """Attributes of full trees of numbers that are often equal, whose leaves speak of a target each."""
    forest = _Forest(of, seed, 4)
    for _ in range(count):
        forest.tree(1 << depth, ORDERED, 1, list(range(targets)))
    return forest.attributes()


@pytest.mark.sample(2)
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"])
@pytest.mark.parametrize("positive", [False, True])
def test_what_becomes_of_scores(transform: str, positive: bool) -> None:
    attributes = full_trees("class", 3)
    weights = np.random.default_rng(1).uniform(0 if positive else -1, 1, len(attributes["class_weights"])) / 6
    attributes["class_weights"] = np.where(weights < 0.02, 0, weights).tolist() if positive else weights.tolist()
    owned = {"classlabels_int64s": [7, 3, 9], "post_transform": transform}
    # PROBIT near a half is the root of what is left of 4.3 - 4.3, which float32 has with an error of 5e-7.
    check("TreeEnsembleClassifier", samples(50, 4), [(7, 1), (1, 2)], 1e-3 if transform == "PROBIT" else 2e-6,
          **owned, **attributes)  # fmt: skip


def test_probit_of_one_target() -> None:
    attributes = full_trees("target", 1)
    attributes["target_weights"] = (np.random.default_rng(2).uniform(0.02, 0.05, 6 * 16)).tolist()  # shares below 0.3
    check("TreeEnsembleRegressor", samples(50, 4), [(1, 2)], 4e-6, n_targets=1, post_transform="PROBIT", **attributes)


def test_probit_of_one_score_of_two_classes_is_refused() -> None:
    owned = {"classlabels_int64s": [0, 1], "post_transform": "PROBIT"}
    model = model_of("TreeEnsembleClassifier", samples(2, 4), [(7, 1), (1, 2)], **owned, **full_trees("class", 1))
    with pytest.raises(lb.UnsupportedOperatorError, match="PROBIT of one score gives no score for the other class"):
        lb.compile(model)


@pytest.mark.sample(2)
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("positive", [False, True])
def test_two_classes_that_leaves_speak_of_one_of(transform: str, positive: bool) -> None:
    attributes = full_trees("class", 1)
    if positive:
        attributes["class_weights"] = [abs(w) / 6 for w in attributes["class_weights"]]
    owned = {"classlabels_int64s": [0, 1], "post_transform": transform}
    check("TreeEnsembleClassifier", samples(50, 4), [(7, 1), (1, 2)], **owned, **attributes)


@pytest.mark.parametrize("leaves", [8, 100])
def test_an_open_number_of_features(leaves: int) -> None:
    forest = _Forest("target", leaves, 4)
    for _ in range(3):
        forest.tree(leaves, ORDERED, 1, [0])
    attributes = {"n_targets": 1, **forest.attributes()}
    check("TreeEnsembleRegressor", samples(40, 6), [(1, 2)], features="F", **attributes)
    session = compiled(model_of("TreeEnsembleRegressor", samples(2, 4), [(1, 2)], features="F", **attributes))
    with pytest.raises(lb.ShapeError, match="how many features a sample has is 3 with F=3; 4 is legal"):
        session(np.zeros((2, 3), np.float32))


def test_numbers_of_samples_around_those_that_go_down_together() -> None:
    forest = _Forest("target", 3, 4)
    for count in (80, 3, 1):
        forest.tree(count, ORDERED, 1, [0, 1])
    check("TreeEnsembleRegressor", samples(70, 4), [(1, 2)], rows=(15, 16, 17, 31, 32, 33, 48, 64), n_targets=2,
          **forest.attributes())  # fmt: skip


def test_more_than_a_thousand_levels() -> None:
    forest = _Forest("target", 5, 4)
    forest.tree(1500, ["BRANCH_LEQ"], 1, [0], chain=True)
    attributes = forest.attributes()
    attributes["nodes_values"] = [-3.0 - node % 3 for node in range(len(attributes["nodes_values"]))]  # seldom a leaf
    check("TreeEnsembleRegressor", samples(20, 4), [(1, 2)], n_targets=1, **attributes)


def test_infinity_and_nan_are_told_apart() -> None:
    forest = _Forest("target", 6, 4)
    for _ in range(4):
        forest.tree(20, ALL, 1, [0])
    attributes, rng = forest.attributes(), np.random.default_rng(0)
    values = rng.choice([np.inf, -np.inf, np.nan, 0.0, -0.25, 1.0], len(attributes["nodes_values"]))
    x = rng.choice([np.inf, -np.inf, np.nan, 0.0, -0.0, -0.25, 1.0], (200, 4)).astype(np.float32)
    check("TreeEnsembleRegressor", x, [(1, 2)], n_targets=1, **attributes | {"nodes_values": values.tolist()})


@pytest.mark.sample(3)
@pytest.mark.parametrize("how", ["AVERAGE", "SUM", "MIN", "MAX"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_leaves_that_are_apart(how: str, dtype: type) -> None:
    """TreeEnsemble: full trees of three levels, of thresholds and weights in ``dtype``."""
    rng, targets, count = np.random.default_rng(7), 2, 5
    tensor = onnx.numpy_helper.from_array
    inner = [7 * tree + node for tree in range(count) for node in range(7)]
    children = [(2 * (node % 7) + 1, 2 * (node % 7) + 2) for node in inner]
    ends = [[7 * (node // 7) + child if child < 7 else 8 * (node // 7) + child - 7 for child in pair]
            for node, pair in zip(inner, children, strict=True)]  # fmt: skip
    leaves = [[int(child >= 7) for child in pair] for pair in children]
    check(
        "TreeEnsemble", rng.standard_normal((40, 4)).astype(dtype),
        [(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), 2)], opset=5,
        n_targets=targets, aggregate_function=["AVERAGE", "SUM", "MIN", "MAX"].index(how),
        tree_roots=[7 * tree for tree in range(count)], nodes_featureids=rng.integers(0, 4, 7 * count).tolist(),
        nodes_splits=tensor(rng.standard_normal(7 * count).astype(dtype), "splits"),
        nodes_modes=tensor(np.repeat(np.arange(count) % 4, 7).astype(np.uint8), "modes"),
        nodes_truenodeids=[pair[0] for pair in ends], nodes_falsenodeids=[pair[1] for pair in ends],
        nodes_trueleafs=[pair[0] for pair in leaves], nodes_falseleafs=[pair[1] for pair in leaves],
        leaf_targetids=rng.integers(0, targets, 8 * count).tolist(),
        leaf_weights=tensor(rng.standard_normal(8 * count).astype(dtype), "weights"),
    )  # fmt: skip


def test_what_is_no_tree_is_refused() -> None:
    attributes, x = {"n_targets": 1, **full_trees("target", 1)}, samples(2, 4)
    circle = [0] * len(attributes["nodes_truenodeids"])
    with pytest.raises(lb.NodeError, match="a node that follows itself"):
        lb.compile(model_of("TreeEnsembleRegressor", x, [(1, 2)], **attributes | {"nodes_truenodeids": circle}))
    with pytest.raises(lb.ShapeError, match="tests feature 3 of samples that have 3"):
        lb.compile(model_of("TreeEnsembleRegressor", x[:, :3], [(1, 2)], **attributes))
