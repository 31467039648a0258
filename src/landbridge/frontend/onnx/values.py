"""What values of a model are while it is imported: arrays, values of the graph, or unknown."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.errors import ShapeError
from landbridge.ir.types import dtype_of, element_count, shape_of
from landbridge.ops.context import Operand
from landbridge.sizes.size import Size


class Unknown:
    """The value of a node that could not be imported."""


UNKNOWN: Final = Unknown()
Imported: TypeAlias = Operand | Unknown


def is_known(value: Any) -> bool:
    """Whether a value could be imported."""
    return isinstance(value, np.ndarray | SSAValue)


def shape_text(value: Any) -> str:
    """The shape of a value for a message."""
    return str(_shape(value)) if is_known(value) else "unknown"


def check_single(what: str, value: Any) -> None:
    """Raise ShapeError for a known value that has not one element."""
    if is_known(value) and element_count(_shape(value)) != 1:
        raise ShapeError(f"{what} has shape {_shape(value)}; one element is legal")


def constant_if_empty(value: Operand) -> Operand:
    """A tensor without elements is a constant."""
    shape = shape_of(value.type) if isinstance(value, SSAValue) else ()
    if isinstance(value, SSAValue) and 0 in shape and not any(isinstance(e, Size) for e in shape):
        return np.zeros(shape, numpy_dtype(dtype_of(value.type)))
    return value


def _shape(value: Operand) -> tuple[int, ...]:
    return value.shape if isinstance(value, np.ndarray) else shape_of(value.type)
