"""Linear models of ``ai.onnx.ml``, operators that prepare their inputs, and transforms of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from landbridge.errors import UnsupportedOperatorError
from landbridge.operators import Array, HostValue, Results, host_operator


def class_results(x: HostValue, **attributes: Any) -> Results:
    """Returns the specs of labels and scores of a classifier; raises UnsupportedOperatorError where labels are text."""
    labels = attributes.get("classlabels_int64s", attributes.get("classlabels_ints"))
    if not labels:
        raise UnsupportedOperatorError(
            "its labels are text, and outputs are numbers; convert the model with int64 labels"
        )
    return [((x.shape[0],), "int64"), ((x.shape[0], len(labels)), "float32")]


def scores_of(scores: Array, transform: str) -> Array:
    """Returns ``scores`` after ``post_transform``."""
    if transform == "LOGISTIC":
        return np.asarray(1 / (1 + np.exp(-scores)))
    if transform in ("SOFTMAX", "SOFTMAX_ZERO"):
        powers = np.exp(scores - scores.max(1, keepdims=True))
        if transform == "SOFTMAX_ZERO":
            powers = np.where(scores == 0, 0, powers)
        return np.asarray(powers / powers.sum(1, keepdims=True))
    if transform == "NONE":
        return scores
    raise UnsupportedOperatorError(f"post_transform {transform!r}; legal: NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO")


def classified(scores: Array, labels: Sequence[int], transform: str, threshold: float) -> tuple[Array, Array]:
    """Returns the label of each row and its scores; one score for two classes is that of the second, compared with
    ``threshold``.
    """
    if scores.shape[1] == 1 and len(labels) == 2:
        chosen = (scores[:, 0] > threshold).astype(int)
        if transform == "LOGISTIC":
            scores = scores_of(np.concatenate([-scores, scores], 1), transform)
        elif transform == "NONE":
            scores = np.concatenate([1 - scores if threshold else -scores, scores], 1)
        else:
            scores = scores_of(np.concatenate([-scores, scores], 1), transform)
    else:
        chosen = scores.argmax(1)
        scores = scores_of(scores, transform)
    return np.array(labels, np.int64)[chosen], scores.astype(np.float32)


def _same(x: HostValue, **_: Any) -> Results:
    return [(x.shape, "float32")]


@host_operator("ai.onnx.ml", "Scaler", results=_same)
def scaler(x: Array, *, offset: Sequence[float] = (0.0,), scale: Sequence[float] = (1.0,)) -> Array:
    """Computes ``(x - offset) * scale``, with a value for each column or one for all."""
    return np.asarray((x.astype(np.float32) - np.array(offset, np.float32)) * np.array(scale, np.float32))


@host_operator("ai.onnx.ml", "Normalizer", results=_same)
def normalizer(x: Array, *, norm: str = "MAX") -> Array:
    """Divides rows by their norm; a row of zeros stays."""
    wide = x.astype(np.float32)
    last = -1
    size = {
        "MAX": lambda: wide.max(last, keepdims=True),
        "L1": lambda: np.abs(wide).sum(last, keepdims=True),
        "L2": lambda: np.sqrt(np.square(wide).sum(last, keepdims=True)),
    }[norm]()
    return np.asarray(wide / np.where(size == 0, 1, size))


@host_operator("ai.onnx.ml", "Imputer", results=lambda x, **_: [(x.shape, x.dtype)])
def imputer(
    x: Array,
    *,
    imputed_value_floats: Sequence[float] = (),
    imputed_value_int64s: Sequence[int] = (),
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Array:
    """Replaces missing values by a value of their column."""
    if x.dtype.kind == "f":
        missing = np.isnan(x) if np.isnan(replaced_value_float) else x == np.float32(replaced_value_float)
        return np.asarray(np.where(missing, np.array(imputed_value_floats, x.dtype), x))
    return np.asarray(np.where(x == replaced_value_int64, np.array(imputed_value_int64s, x.dtype), x))


def _columns(x: HostValue, at: HostValue) -> Results:
    count: Any = 1
    for extent in at.shape:
        count = count * extent
    return [((*x.shape[:-1], count) if len(x.shape) > 1 else (1, count), x.dtype)]


@host_operator("ai.onnx.ml", "ArrayFeatureExtractor", results=_columns)
def array_feature_extractor(x: Array, at: Array) -> Array:
    """Selects columns by number."""
    found = x[..., at.reshape(-1)]
    return found if x.ndim > 1 else found.reshape(1, -1)


def _targets(x: HostValue, *, targets: int = 1, **_: Any) -> Results:
    return [((x.shape[0], targets), "float32")]


@host_operator("ai.onnx.ml", "LinearRegressor", results=_targets)
def linear_regressor(
    x: Array,
    *,
    coefficients: Sequence[float],
    intercepts: Sequence[float] = (),
    post_transform: str = "NONE",
    targets: int = 1,
) -> Array:
    """Computes a weighted sum of columns for each target."""
    found = x.astype(np.float32) @ np.array(coefficients, np.float32).reshape(targets, -1).T
    if len(intercepts):
        found = found + np.array(intercepts, np.float32)
    return scores_of(found, post_transform).astype(np.float32)


@host_operator("ai.onnx.ml", "LinearClassifier", results=class_results)
def linear_classifier(
    x: Array,
    *,
    classlabels_ints: Sequence[int],
    coefficients: Sequence[float],
    intercepts: Sequence[float] = (),
    multi_class: int = 0,
    post_transform: str = "NONE",
) -> tuple[Array, Array]:
    """Returns the class of the largest weighted sum of columns, and the scores of all."""
    held = len(intercepts) * x.shape[1] or len(coefficients)  # a file may have more of them than its columns need
    weights = np.array(coefficients[:held], np.float32).reshape(-1, x.shape[1])
    scores = x.astype(np.float32) @ weights.T
    if len(intercepts):
        scores = scores + np.array(intercepts, np.float32)
    return classified(scores, classlabels_ints, post_transform, 0.0)
