"""What models of ``ai.onnx.ml`` make of the scores of classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.gather import gather
from landbridge.ops.reduce import arg_extreme
from landbridge.ops.softmax import softmax_along


def kernel_of(c: OpContext, transform: str) -> str:
    """``transform``, a ``post_transform`` that ``transformed`` does; raises UnsupportedOperatorError for another."""
    if transform not in ("NONE", "LOGISTIC", "SOFTMAX"):
        raise c.unsupported(f"post_transform {transform!r} has no kernel")
    return transform


def transformed(c: OpContext, scores: Operand, transform: str) -> Operand:
    """``scores`` (rows, targets) after ``post_transform``, in their dtype."""
    if transform == "LOGISTIC":
        return c.elementwise("logistic", [scores], lambda s, v: s.sigmoid(v))
    return softmax_along(c, scores, 1, log=False) if transform == "SOFTMAX" else scores


def of_two(c: OpContext, one: Operand, labels: Sequence[int], transform: str, threshold: float) -> Sequence[Operand]:
    """The label and the scores of two classes, of which ``one`` (rows, 1) is that of the second: it is chosen above
    ``threshold``, which is 0 of scores with a sign."""
    first, second = labels

    def label(s: ScalarBuilder, v: Value) -> Value:
        return s.select(v > threshold, s.const(second, "int64"), s.const(first, "int64"))

    def of_other(s: ScalarBuilder, v: Value) -> Value:
        return 1.0 - v if threshold and transform == "NONE" else s.neg(v)

    both = c.g.concat([c.value(c.elementwise("other_class", [one], of_other)), c.value(one)], 1)
    made = c.elementwise("label", [one], label, "int64")
    return c.reshape(made, c.shape(one)[:1]), c.cast(transformed(c, both, transform), "float32")


def label_of(c: OpContext, scores: Operand, labels: Sequence[int]) -> Operand:
    """The label of the first largest of ``scores`` in each row."""
    at: Operand = arg_extreme(OpContext(c.g, "ArgMax", 13, {"axis": 1, "keepdims": 0}), scores)
    if list(labels) == list(range(len(labels))):
        return at
    found: Operand = gather(OpContext(c.g, "Gather", 13, {"axis": 0}), np.array(labels, np.int64), at)
    return found
