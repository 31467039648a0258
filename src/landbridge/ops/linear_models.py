"""Linear models of ``ai.onnx.ml``, and operators that prepare their inputs, as kernels.

What these refuse, the functions of ``host_operators`` do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from landbridge.ir.scalar_dtypes import is_float
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import element_count
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, SUMS, accuracy
from landbridge.ops.class_scores import kernel_of, label_of, of_two, transformed
from landbridge.ops.context import Array, OpContext, Operand
from landbridge.ops.gather import gather
from landbridge.ops.matrix_product import matrix_product
from landbridge.ops.reduce import reduced
from landbridge.ops.rules import index_of, rules

_ML = "ai.onnx.ml"


@rules("X: _ ...")
@kernel(_ML, "Scaler")
@accuracy(ulp=1)
def scaler(c: OpContext, x: Operand) -> Operand:
    """Computes ``(x - offset) * scale``, with a value for each column or one for all, in f32."""
    ends = [_columns(c, x, c.attribute(name, [value])) for name, value in (("offset", 0.0), ("scale", 1.0))]
    return c.elementwise("scale", [c.cast(x, "float32"), *ends], lambda s, v, offset, scale: (v - offset) * scale)


@rules("X: _ ...")
@kernel(_ML, "Imputer")
@accuracy(EXACT)
def imputer(c: OpContext, x: Operand) -> Operand:
    """Replaces missing values by a value of their column."""
    dtype = c.dtype(x)
    kind = "float" if is_float(dtype) else "int64"
    missing = c.attribute(f"replaced_value_{kind}", 0.0 if is_float(dtype) else 0)
    values = _columns(c, x, c.attribute(f"imputed_value_{kind}s", []), dtype)

    def replaced(s: ScalarBuilder, v: Value, value: Value) -> Value:
        is_missing = v.ne(v) if isinstance(missing, float) and math.isnan(missing) else v.eq(missing)
        return s.select(is_missing, value, v)

    return c.elementwise("impute", [x, values], replaced)


@rules("X: _ ...")
@kernel(_ML, "Normalizer")
@accuracy(ulp=4, note="of a row of one sign or few; the norm is a sum")
def normalizer(c: OpContext, x: Operand) -> Operand:
    """Divides rows by their norm; a row of zeros stays."""
    wide, last = c.cast(x, "float32"), c.rank(x) - 1
    kind = {"MAX": "max", "L1": "l1", "L2": "l2"}.get(c.attribute("norm", "MAX"))
    if kind is None:
        raise c.unsupported(f"norm {c.attribute('norm')!r}; legal: MAX, L1, L2")
    size = reduced(c, kind, wide, [last], keepdims=True)
    return c.elementwise("normalize", [wide, size], lambda s, v, n: v / s.select(n.eq(0.0), 1.0, n))


@rules("X: _ ...", "Y: ...", indices={"Y": index_of("X[-1]")})
@kernel(_ML, "ArrayFeatureExtractor")
@accuracy(EXACT)
def array_feature_extractor(c: OpContext, x: Operand, at: Operand) -> Operand:
    """Selects columns by number."""
    wanted = c.reshape(at, (element_count(c.shape(at)),))
    rows = x if c.rank(x) > 1 else c.reshape(x, (1, *c.shape(x)))
    found: Operand = gather(OpContext(c.g, "Gather", 13, {"axis": -1}), rows, wanted)
    return found


@rules("X: N C")
@kernel(_ML, "LinearRegressor")
@accuracy(SUMS)
def linear_regressor(c: OpContext, x: Operand) -> Operand:
    """Computes a weighted sum of columns for each target."""
    transform, targets = kernel_of(c, c.attribute("post_transform", "NONE")), c.attribute("targets", 1)
    return transformed(c, _sums(c, x, targets, c.attribute("intercepts", [])), transform)


@rules("X: N C")
@kernel(_ML, "LinearClassifier")
@accuracy(SUMS)
def linear_classifier(c: OpContext, x: Operand) -> Sequence[Operand]:
    """Returns the class of the largest weighted sum of columns, and the scores of all."""
    labels, transform = c.attribute("classlabels_ints", []), kernel_of(c, c.attribute("post_transform", "NONE"))
    features, intercepts = c.shape(x)[1], c.attribute("intercepts", [])
    if not labels or not isinstance(features, int):
        raise c.unsupported("its labels are text, or how many features a sample has is open")
    rows = len(intercepts) or len(c.attribute("coefficients")) // max(features, 1)
    scores = _sums(c, x, rows, intercepts)
    if rows == 1 and len(labels) == 2:
        return of_two(c, scores, labels, transform, 0.0)
    return label_of(c, scores, labels), transformed(c, scores, transform)


def _sums(c: OpContext, x: Operand, rows: int, intercepts: Sequence[float]) -> Operand:
    """Computes ``rows`` sums of the columns of ``x``, by coefficients, in f32; a file may have more coefficients than
    columns.
    """
    features = c.shape(x)[1]
    coefficients = np.array(c.attribute("coefficients"), np.float32)
    if not isinstance(features, int) or len(coefficients) < rows * features:
        raise c.unsupported(f"{len(coefficients)} coefficients for {rows} sums of {features} columns")
    weights = coefficients[: rows * features].reshape(rows, features)
    total = matrix_product(c, c.cast(x, "float32"), weights, trans_b=True)
    if not len(intercepts):
        return total
    return c.elementwise("intercepts", [total, np.array(intercepts, np.float32)], lambda s, v, b: v + b)


def _columns(c: OpContext, x: Operand, values: Sequence[float], dtype: str = "float32") -> Array:
    """Returns a number for each column of ``x``, or one for all."""
    width = c.shape(x)[-1]
    if len(values) != 1 and len(values) != width:
        raise c.unsupported(f"{len(values)} numbers for {width} columns")
    return np.array(values, dtype)
