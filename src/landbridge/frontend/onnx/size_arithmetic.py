"""Evaluates nodes that compute shapes from open extents, as arithmetic of Sizes.

Their operands are arrays of int64, or of objects that are ints and Sizes. Other operators are left to their handlers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence, Set
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from landbridge.errors import UndecidedSizeError
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.extent_arrays import as_values, extents_array
from landbridge.sizes.replaced import replaced
from landbridge.sizes.size import (
    Extent,
    Size,
    agree,
    at_least,
    dimension,
    dimensions_of,
    largest,
    product,
    smallest,
    undecided,
)

Array: TypeAlias = np.ndarray[Any, Any]
Attributes: TypeAlias = Mapping[str, Any]
Evaluate: TypeAlias = Callable[[Attributes, Sequence[Array]], Array]


def _each(function: Callable[..., Any]) -> Evaluate:
    """Returns an evaluator that applies ``function`` to each element, with numpy's broadcasting."""

    def evaluate(attributes: Attributes, operands: Sequence[Array]) -> Array:
        broadcast = np.broadcast_arrays(*operands)
        results = [function(*elements) for elements in zip(*(a.reshape(-1).tolist() for a in broadcast), strict=True)]
        array = np.empty(len(results), object)
        array[:] = results
        return array.reshape(broadcast[0].shape)

    return evaluate


def _ordered(left: Extent, right: Extent) -> bool:
    answer = at_least(left, right)
    if answer is None:
        raise undecided(f"{left} >= {right}", left, right)
    return answer


def _divided(left: Extent, right: Extent) -> Extent:
    """Returns ``left / right`` as ONNX divides integers, rounded towards zero."""
    if _ordered(left, 0) == _ordered(right, 0):
        return left // right
    return -(-left // right)


def _chosen(condition: Any, left: Any, right: Any) -> Any:
    return left if condition else right


def _axes(attributes: Attributes, operands: Sequence[Array]) -> list[int]:
    given = operands[1].reshape(-1).tolist() if len(operands) > 1 else attributes.get("axes", [])
    return [int(axis) for axis in given]


def _unsqueeze(attributes: Attributes, operands: Sequence[Array]) -> Array:
    return np.expand_dims(operands[0], tuple(_axes(attributes, operands)))


def _squeeze(attributes: Attributes, operands: Sequence[Array]) -> Array:
    return np.squeeze(operands[0], tuple(_axes(attributes, operands)) or None)


def _gather(attributes: Attributes, operands: Sequence[Array]) -> Array:
    return np.asarray(np.take(operands[0], operands[1].astype(np.int64), axis=attributes.get("axis", 0)), object)


def _slice(attributes: Attributes, operands: Sequence[Array]) -> Array:
    x, *given = operands
    names = ("starts", "ends", "axes", "steps")
    parts = [a.reshape(-1).tolist() for a in given] or [attributes[n] for n in names if n in attributes]
    starts, ends = parts[0], parts[1]
    axes = parts[2] if len(parts) > 2 else range(len(starts))
    steps = parts[3] if len(parts) > 3 else [1] * len(starts)
    cut = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        cut[axis] = slice(start, None if step < 0 and end < -x.shape[axis] else end, step)
    return x[tuple(cut)]


def _concat(attributes: Attributes, operands: Sequence[Array]) -> Array:
    return np.concatenate([a.astype(object) for a in operands], axis=attributes["axis"])


def _reduced(function: Callable[..., Extent]) -> Evaluate:
    def evaluate(attributes: Attributes, operands: Sequence[Array]) -> Array:
        x = operands[0]
        axes = _axes(attributes, operands)
        if x.ndim != 1 or axes not in ([], [0], [-1]):
            raise NotImplementedError
        result = np.empty((1,), object)
        result[0] = function(x.tolist())
        return result if attributes.get("keepdims", 1) else result.reshape(())

    return evaluate


def _same(attributes: Attributes, operands: Sequence[Array]) -> Array:
    return operands[0]


def _reshape(attributes: Attributes, operands: Sequence[Array]) -> Array:
    return operands[0].reshape([int(e) for e in operands[1].reshape(-1)])


def _cast(attributes: Attributes, operands: Sequence[Array]) -> Array:
    if attributes["to"] not in ("int64", "int32"):
        raise NotImplementedError
    return operands[0]


_OPERATORS: dict[str, Evaluate] = {
    "Add": _each(operator.add),
    "Sub": _each(operator.sub),
    "Mul": _each(operator.mul),
    "Div": _each(_divided),
    "Mod": _each(operator.mod),
    "Neg": _each(operator.neg),
    "Min": _each(smallest),
    "Max": _each(largest),
    "Equal": _each(agree),
    "GreaterOrEqual": _each(_ordered),
    "LessOrEqual": _each(lambda left, right: _ordered(right, left)),
    "Greater": _each(lambda left, right: not _ordered(right, left)),
    "Less": _each(lambda left, right: not _ordered(left, right)),
    "Where": _each(_chosen),
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Reshape": _reshape,
    "Identity": _same,
    "Cast": _cast,
    "ReduceProd": _reduced(product),
    "ReduceSum": _reduced(lambda extents: reduce(operator.add, extents, 0)),
    "ReduceMax": _reduced(lambda extents: largest(*extents)),
    "ReduceMin": _reduced(lambda extents: smallest(*extents)),
}
#: Operators whose results are bools.
COMPARISONS = {"Equal", "GreaterOrEqual", "LessOrEqual", "Greater", "Less"}


def supposed(
    op_type: str, attributes: Attributes, operands: Sequence[Array], found: Array, names: Set[str]
) -> set[str]:
    """Returns which of the dimensions ``names`` must be at least 1 for ``found``, the result of ``evaluate_sizes``, to
    be right.

    If such a dimension is 0, the node returns another result, or one that depends on the input.
    """
    used = {n: s for n, s in dimensions_of(e for a in operands for e in a.flat).items() if n in names and s.low > 0}

    def from_zero(name: str) -> bool:
        high = used[name].high
        wider = {name: dimension(name, 0, None if high is None else high * used[name].unit)}

        try:
            again = evaluate_sizes(op_type, attributes, [_in_ranges(a, wider) for a in operands])
        except UndecidedSizeError:
            return False
        wanted = _in_ranges(found, wider)
        return again is not None and again.shape == wanted.shape and again.tolist() == wanted.tolist()

    return {name for name in used if not from_zero(name)}


def _in_ranges(array: Array, dimensions: Mapping[str, Extent]) -> Array:
    if array.dtype != object:
        return array
    result = np.empty(array.size, object)
    result[:] = [replaced(e.terms, dimensions) if isinstance(e, Size) else e for e in array.flat]
    return result.reshape(array.shape)


def counted(op_type: str, operands: Sequence[Array]) -> tuple[str, bool] | None:
    """Returns the only dimension that a comparison of ``operands`` depends on, and its result if that is not 0.

    Returns None if there are several dimensions, or several results.
    """
    used = dimensions_of(e for a in operands for e in a.flat)
    if len(used) != 1:
        return None
    ((name, symbol),) = used.items()
    high = None if symbol.high is None else symbol.high * symbol.unit
    try:
        found = evaluate_sizes(op_type, {}, [_in_ranges(a, {name: dimension(name, 1, high)}) for a in operands])
    except UndecidedSizeError:
        return None
    return None if found is None or found.size != 1 else (name, bool(found.reshape(-1)[0]))


#: The bits of the whole numbers that a dtype can represent exactly.
_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53, "int32": 31, "int64": 63}


def is_exact(extents: Array, dtype: str) -> bool:
    """Returns whether ``dtype`` represents ``extents`` exactly for all sizes of the dimensions."""
    most = 1 << _BITS.get(dtype, 0)
    ends = ((e, e) if isinstance(e, int) else (e.low, e.high) for e in extents.reshape(-1).tolist())
    return all(low is not None and high is not None and -most <= low and high <= most for low, high in ends)


def whole_array(c: OpContext, x: Operand) -> Array | None:
    """Returns the whole numbers that an operand is known to consist of, as an array of its shape; None if they are not
    known.
    """
    values = c.whole(x)
    return None if values is None else extents_array(values).reshape(c.shape(x))


def evaluate_sizes(op_type: str, attributes: Attributes, operands: Sequence[Array | None]) -> Array | None:
    """Returns the result of a node with Sizes among its operands; None if it is left to its handler.

    Raises UndecidedSizeError if the kind of the result depends on the input.
    """
    function = _OPERATORS.get(op_type)
    given = [a for a in operands if a is not None]
    if (
        function is None
        or len(given) < len(operands)
        or not all(a.dtype == object or a.dtype.kind in "iub" for a in given)
    ):
        return None
    try:
        result = function(attributes, given)
    except NotImplementedError:
        return None
    except UndecidedSizeError as error:
        if error.question is None:  # a number is required, as the end of a slice; a handler may not need it
            return None
        raise
    return result.astype(bool) if op_type in COMPARISONS else as_values(np.asarray(result, object))
