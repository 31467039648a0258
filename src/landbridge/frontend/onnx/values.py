"""The values of a model during import: arrays, values of the graph, or unknown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.errors import ShapeError, UnsupportedOperatorError
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.types import dtype_of, element_count, shape_of
from landbridge.ops.context import Operand
from landbridge.ops.extent_arrays import extents_array
from landbridge.sizes.printing import written
from landbridge.sizes.size import Extent, Size

#: The most terms in the text of an extent: half a megabyte in each place of a program that has it.
_MOST_WRITTEN = 1 << 17


class Unknown:
    """The value of a node that could not be imported."""


UNKNOWN: Final = Unknown()
ImportedValue: TypeAlias = Operand | Unknown


def is_known(value: Any) -> bool:
    """Returns whether a value could be imported."""
    return isinstance(value, np.ndarray | SSAValue)


def shape_text(value: Any) -> str:
    """Returns the shape of a value for a message."""
    return str(_shape(value)) if is_known(value) else "unknown"


def check_single(subject: str, value: Any) -> None:
    """Raises ShapeError for a known value that does not have exactly one element."""
    if is_known(value) and element_count(_shape(value)) != 1:
        raise ShapeError(f"{subject} has shape {_shape(value)}; one element is legal")


def check_sizes_are_short(subject: str, values: Sequence[Any]) -> None:
    """Raises UnsupportedOperatorError for a tensor with an extent whose expression is too long to be written.

    Each minimum or maximum of an extent repeats it, as that of a Slice with bounds that inputs give: a chain of them
    makes text that grows exponentially.
    """
    for value in values:
        for extent in shape_of(value.type) if isinstance(value, SSAValue) else ():
            if isinstance(extent, Size) and (count := written(extent.terms)) > _MOST_WRITTEN:
                names = ", ".join(map(repr, list(extent.symbols)[:4]))
                raise UnsupportedOperatorError(
                    f"{subject}: an extent of its result is an expression of {count} terms, and {_MOST_WRITTEN} are "
                    f"legal; state some of the sizes that it depends on, such as {names}: shapes=, dims= or constants="
                )


def constant_if_empty(g: GraphBuilder, value: Operand) -> Operand:
    """Returns a tensor without elements as a constant, or as a view of one if it has open extents: no kernel computes
    it.
    """
    if not isinstance(value, SSAValue) or not has_no_elements(value):
        return value
    return empty_tensor(g, shape_of(value.type), dtype_of(value.type))


def has_no_elements(value: Any) -> bool:
    """Returns whether a value is a tensor that has no elements, whatever the sizes of its other dimensions are."""
    return is_known(value) and 0 in _shape(value)


def empty_tensor(g: GraphBuilder, shape: Sequence[Extent], dtype: str) -> Operand:
    """Returns a tensor of ``shape``, which has an extent of 0: a constant, or a view of one if it has open extents."""
    if not any(isinstance(e, Size) for e in shape):
        return np.zeros(shape, numpy_dtype(dtype))
    return g.reshape(g.constant(np.zeros(0, numpy_dtype(dtype)), g.node), shape)


def renamed(g: GraphBuilder, value: Any, extent: Callable[[Extent], Extent]) -> Any:
    """Returns ``value`` with ``extent`` applied to each of its extents, or to its elements if these are sizes."""
    if isinstance(value, SSAValue):
        shape = shape_of(value.type)
        wanted = tuple(map(extent, shape))
        result = value if wanted == shape else g.renamed(value, wanted)
        if value in g.whole:
            g.whole[result] = renamed(g, g.whole[value], extent)
        return result
    if isinstance(value, np.ndarray) and value.dtype == object:
        return extents_array([extent(each) for each in value.reshape(-1).tolist()]).reshape(value.shape)
    return value


def _shape(value: Operand) -> tuple[int, ...]:
    return value.shape if isinstance(value, np.ndarray) else shape_of(value.type)
