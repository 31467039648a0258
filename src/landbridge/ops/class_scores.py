"""Transforms scores of classes to results of models of ``ai.onnx.ml``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.gather import gather
from landbridge.ops.reduce import arg_extreme, reduced
from landbridge.ops.softmax import softmax_along

_TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")
#: Scores nearer to 0 than this are none to SOFTMAX_ZERO.
_ALMOST_ZERO = 1e-7
#: Of the approximation of the inverse of erf (S. Winitzki, 2008).
_BEND = np.float32(0.147)


def kernel_of(c: OpContext, transform: str) -> str:
    """Returns ``transform``, a ``post_transform`` that ``transformed`` supports; raises UnsupportedOperatorError for
    another.
    """
    if transform not in _TRANSFORMS:
        raise c.unsupported(f"post_transform {transform!r} has no kernel; legal: {', '.join(_TRANSFORMS)}")
    return transform


def transformed(c: OpContext, scores: Operand, transform: str) -> Operand:
    """Computes ``scores`` (rows, targets) after ``post_transform``, in their dtype; float32 after PROBIT."""
    match transform:
        case "LOGISTIC":
            return c.elementwise("logistic", [scores], lambda s, v: s.sigmoid(v))
        case "SOFTMAX":
            return softmax_along(c, scores, 1, log=False)
        case "SOFTMAX_ZERO":
            return _softmax_but_of_zeros(c, scores)
        case "PROBIT":
            return c.elementwise("probit", [c.cast(scores, "float32")], _probit)
    return scores


def _softmax_but_of_zeros(c: OpContext, scores: Operand) -> Operand:
    """Computes the softmax along rows over the elements that are not 0; zeros stay."""
    most = reduced(c, "max", scores, [1], keepdims=True)

    def power(s: ScalarBuilder, v: Value, most: Value) -> Value:
        return s.select(s.math("abs", v) > _ALMOST_ZERO, s.exp(v - most), v * s.exp(s.neg(most)))

    powers = c.elementwise("powers", [scores, most], power)
    total = reduced(c, "sum", powers, [1], keepdims=True)
    return c.elementwise("shares", [powers, total], lambda s, v, t: v / t)


def _probit(s: ScalarBuilder, share: Value) -> Value:
    """Computes the probit: the argument at which the normal distribution reaches ``share``, approximately, in float32
    with each operation rounded.

    Near a share of a half this is a small difference of large numbers: with another order or another precision it gives
    other numbers than others make of the same formula.
    """
    e = s.uncontracted()
    x = e.wrap(share.ssa, "float32") * 2.0 - 1.0
    log = e.math("log", (1.0 - x) * (1.0 + x))
    half = log * 0.5 + float(np.float32(2) / (np.float32(3.14159) * _BEND))
    root = e.sqrt(e.sqrt(half * half - log * float(np.float32(1) / _BEND)) - half)
    return e.select(x < 0.0, e.neg(root), root) * float(np.float32(1.41421356))


def of_two(c: OpContext, one: Operand, labels: Sequence[int], transform: str, threshold: float) -> Sequence[Operand]:
    """Returns the label and the scores of two classes, where ``one`` (rows, 1) is the score of the second, which is
    chosen above ``threshold``, 0 for signed scores.
    """
    if transform == "PROBIT":
        raise c.unsupported("PROBIT of one score gives no score for the other class; give leaves or rows for both")
    first, second = labels

    def label(s: ScalarBuilder, v: Value) -> Value:
        return s.select(v > threshold, s.const(second, "int64"), s.const(first, "int64"))

    def of_other(s: ScalarBuilder, v: Value) -> Value:
        return 1.0 - v if threshold and transform == "NONE" else s.neg(v)

    both = c.g.concat([c.value(c.elementwise("other_class", [one], of_other)), c.value(one)], 1)
    created = c.elementwise("label", [one], label, "int64")
    return c.reshape(created, c.shape(one)[:1]), c.cast(transformed(c, both, transform), "float32")


def label_of(c: OpContext, scores: Operand, labels: Sequence[int]) -> Operand:
    """Returns the label of the first largest of ``scores`` in each row."""
    at: Operand = arg_extreme(OpContext(c.g, "ArgMax", 13, {"axis": 1, "keepdims": 0}), scores)
    if list(labels) == list(range(len(labels))):
        return at
    found: Operand = gather(OpContext(c.g, "Gather", 13, {"axis": 0}), np.array(labels, np.int64), at)
    return found
