"""Nodes that run as numpy functions on the host, and computed values that become dimensions once they are known."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, SSAValue

from landbridge.dtypes import dtype_name, numpy_dtype
from landbridge.errors import LandbridgeError, NodeError
from landbridge.executable.segments import READ
from landbridge.frontend.wanted_inputs import MOST_ELEMENTS, names_of_elements
from landbridge.ir.graph_ops import DEFINES
from landbridge.ir.permissions import Permission
from landbridge.ir.plain_attributes import int_array, plain_attribute
from landbridge.operators import Array, HostOperator, HostValue, Results
from landbridge.operators.implementations import is_built_in
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.extent_arrays import extents_array
from landbridge.sizes.size import LARGEST_EXTENT, Extent, Size, dimensions_of, expected_size


def host_node(c: OpContext, operator: HostOperator, inputs: Sequence[Operand | None]) -> list[Operand]:
    """Returns the outputs of a node that runs as ``operator``; if all inputs are known, they are computed now.

    Raises UnsupportedOperatorError for attributes that are not plain data, and if data would decide an extent that
    cannot be open; NodeError for exceptions of the function.
    """
    attributes = _plain(c)
    arrays = [x for x in inputs if isinstance(x, np.ndarray) and x.dtype != object]
    given = [x for x in inputs if x is not None]
    if arrays and len(arrays) == len(given) and not operator.in_order:
        return list(_ran(c, operator, attributes, inputs)[: c.outputs])
    values = [None if x is None else _described(c, x) for x in inputs]
    types = _results(c, operator, attributes, values)[: c.outputs]
    if len(types) < c.outputs:
        raise NodeError(f"{c.op_type} node {c.g.node!r} has {c.outputs} outputs; its host operator gives {len(types)}")
    defined: list[Extent] = []
    outputs: list[tuple[list[Extent], str]] = []
    for number, (shape, dtype) in enumerate(types):
        created: list[Extent] = []
        for axis, extent in enumerate(shape):
            if extent is None:
                if not defined:
                    c.check_may_be_cut()
                name = c.g.node if len(types) == 1 and shape.count(None) == 1 else f"{c.g.node}_{number}_{axis}"
                extent = c.g.data.new(name)
                defined.append(extent)
            created.append(extent)
        outputs.append((created, dtype))
    parameters: dict[str, Attribute] = {
        "attributes": plain_attribute(attributes),
        "absent": int_array([i for i, x in enumerate(inputs) if x is None]),
        "module": StringAttr("" if is_built_in(operator) else operator.function.__module__),
        "node": StringAttr(c.g.node),
        "inputs": plain_attribute(len(given)),
    }
    if defined:
        parameters[DEFINES] = int_array(defined)
    return list(c.g.host_call(operator.name, [c.value(x) for x in given], outputs, parameters))


def sizes_are_datas(c: OpContext, operator: HostOperator, inputs: Sequence[Operand | None]) -> bool:
    """Returns whether data decide an extent of the results of ``operator`` for ``inputs``."""
    types = _results(c, operator, _plain(c), [None if x is None else _described(c, x) for x in inputs])
    return any(extent is None for shape, _ in types for extent in shape)


def read_sizes(c: OpContext, value: SSAValue, ends: tuple[int, int] | None = None) -> Operand | None:
    """Returns ``value``, which a run computes, as dimensions that are known after it is read; None if that is not
    possible.

    ``ends``: the least and the largest legal element.
    """
    shape, dtype = c.shape(value), c.dtype(value)
    if any(isinstance(extent, Size) for extent in shape) or not 0 < prod(shape) <= MOST_ELEMENTS:
        return None
    if dtype == "bool" or c.g.is_nested or not c.g.data.may(Permission.READ):
        return None
    low, high = ends or (0, LARGEST_EXTENT)
    known = c.g.whole.get(value)
    if known is None:
        names = names_of_elements(f"{c.g.node}_size", prod(shape))
        defined = [c.g.data.new(name, low, high) for name in names]
        c.g.host_call(READ, [value], [], {DEFINES: int_array(defined), "node": StringAttr(c.g.node)})
        c.g.read_dimensions |= dimensions_of(defined).keys()
        known = c.g.whole[value] = extents_array(defined).reshape(shape)
    return known if dtype == "int64" else c.cast(known, dtype)


def _plain(c: OpContext) -> dict[str, Any]:
    """Returns the node's attributes as plain data; tensors of one axis become lists."""
    attributes = {name: value for name, value in c.attributes.items() if value is not None}
    for name, value in attributes.items():
        if isinstance(value, np.ndarray):
            if value.ndim != 1 or value.dtype.kind not in "biuf":
                raise c.unsupported(
                    f"attribute {name!r} is a tensor that is not a list of numbers; host operators get those"
                )
            attributes[name] = value.tolist()
    return attributes


def _described(c: OpContext, x: Operand) -> HostValue:
    known = x if isinstance(x, np.ndarray) and x.dtype != object else None
    return HostValue(tuple(c.shape(x)), c.dtype(x), known)


def _results(
    c: OpContext, operator: HostOperator, attributes: dict[str, Any], values: Sequence[HostValue | None]
) -> list[tuple[list[Extent | None], str]]:
    is_open = any(isinstance(e, Size) for v in values if v is not None for e in v.shape)
    found: Results
    results = operator.results
    if results is not None:
        found = _called(c, lambda: results(*values, **attributes))
    else:
        elements = [v and HostValue(tuple(expected_size(e) for e in v.shape), v.dtype, v.value) for v in values]
        with np.errstate(all="ignore"):
            arrays = _ran(c, operator, attributes, [_zeros_of(v) for v in elements])
        found = [([None] * len(s) if is_open else s, dtype) for s, dtype in _types_of(arrays)]
    return [(list(shape), dtype) for shape, dtype in found]


def _ran(c: OpContext, operator: HostOperator, attributes: dict[str, Any], arrays: Sequence[Any]) -> list[Any]:
    return list(_called(c, lambda: operator.bound(attributes)(*arrays)))


def _called(c: OpContext, function: Any) -> Any:
    try:
        return function()
    except LandbridgeError:
        raise
    except Exception as error:
        raise NodeError(
            f"{c.op_type} node {c.g.node!r}: its host operator raised {type(error).__name__}: {error}"
        ) from error


def _zeros_of(value: HostValue | None) -> Array | None:
    """Returns zeros of the shape and dtype of ``value``, all of whose extents are numbers; its own array where it is
    known.
    """
    if value is None or value.value is not None:
        return None if value is None else value.value
    return np.zeros(value.shape, numpy_dtype(value.dtype))


def _types_of(arrays: Sequence[Array]) -> list[tuple[tuple[int, ...], str]]:
    """Returns the shape and dtype name of each."""
    return [(array.shape, dtype_name(array.dtype)) for array in arrays]
