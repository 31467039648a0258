"""NodeKeys: keys of nodes that are equal where handlers import the nodes as the same operations."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir
from xdsl.ir import Attribute, SSAValue

from landbridge.frontend.onnx.attributes import attribute_values
from landbridge.frontend.onnx.values import ImportedValue
from landbridge.identity_map import IdentityMap
from landbridge.ir.graph_ops import ViewOp
from landbridge.ops.unread import MOST_READ

Array: TypeAlias = np.ndarray[Any, Any]


class NodeKeys:
    """The keys of nodes: operator, attributes, types of operands, and the elements of constants that handlers read.

    ``attributes`` has the keys of attributes by node, of all walks of a model, and gets those that are missing.
    """

    def __init__(self, attributes: dict[ir.Node, Hashable]) -> None:
        self._attributes = attributes
        self._types: IdentityMap[Attribute, int] = IdentityMap()
        self._equal_types: dict[Attribute, int] = {}
        self._arrays: IdentityMap[Array, int] = IdentityMap()
        #: Positions of operands whose elements an import has read, by operator.
        self._read: dict[tuple[str, str], set[int]] = {}

    def note_read(self, node: ir.Node, positions: Iterable[int]) -> None:
        """Let keys of nodes like ``node`` depend on the elements of the operands at ``positions``."""
        self._read.setdefault((node.domain, node.op_type), set()).update(positions)

    def of_attributes(self, node: ir.Node) -> Hashable:
        """Returns the operator of ``node`` and its attributes; None if one of these is a graph."""
        if node not in self._attributes:
            kinds = {attribute.type for attribute in node.attributes.values()}
            self._attributes[node] = (
                None
                if kinds & {ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS}
                else (
                    *(node.domain, node.op_type, node.version),
                    tuple(bool(value.name) for value in node.outputs),
                    tuple((name, _attribute(value)) for name, value in sorted(attribute_values(node).items())),
                    tuple(_equal_shapes(node)),
                )
            )
        return self._attributes[node]

    def of(self, node: ir.Node, operands: Sequence[ImportedValue | None], growths: Container[SSAValue]) -> Hashable:
        """Returns the key of ``node``, whose ``operands`` may be states that grow, which ``growths`` has."""
        read = self._read.get((node.domain, node.op_type), ())
        parts: list[Hashable] = [self.of_attributes(node)]
        # a view and what it is a view of have numbers of their own: either may be another operand
        numbers: IdentityMap[Any, int] = IdentityMap()
        for position, x in enumerate(operands):
            if x is None:
                parts.append(None)
                continue
            known = len(numbers)
            if (number := numbers.setdefault(x, known)) != known:
                parts.append(number)
            elif isinstance(x, SSAValue):
                parts.append((self._type(x.type), x in growths))
                if isinstance(x.owner, ViewOp):
                    source = x.owner.source
                    is_of_view = isinstance(source.owner, ViewOp)
                    parts.append((self._type(source.type), source in growths, x.owner.first, is_of_view))
                    parts.append(numbers.setdefault(source, len(numbers)))
            elif isinstance(x, np.ndarray):
                parts.append(self._array(x, position in read))
        return tuple(parts)

    def _type(self, ty: Attribute) -> int:
        """Returns the number of a type: types are the same objects in most cases, and their hashes walk all of them."""
        found = self._types.get(ty)
        if found is None:
            found = self._types[ty] = self._equal_types.setdefault(ty, len(self._equal_types))
        return found

    def _array(self, x: Array, is_read: bool) -> Hashable:
        if x.dtype == object:
            return "sizes", x.shape, tuple(x.reshape(-1).tolist())
        if not is_weight(x):
            return x.dtype.name, x.shape, x.tobytes()
        if is_read:
            return "read", self._arrays.setdefault(x, len(self._arrays))
        return "weight", x.dtype.name, x.shape


def is_weight(x: Array) -> bool:
    """Returns whether ``x`` has so many elements that keys have them only if they were read."""
    return x.size > MOST_READ and x.dtype != object


def _attribute(value: Any) -> Hashable:
    """Returns a key that is equal for attributes of equal values: as text, -0.0 is not 0, nor 1.0 the integer 1."""
    if not isinstance(value, np.ndarray):
        return repr(value)
    elements = repr(value.tolist()) if value.dtype == object else value.tobytes()  # bytes of objects are addresses
    return value.dtype.name, value.shape, elements


def _equal_shapes(node: ir.Node) -> Iterator[int | None]:
    """Yields for each operand and output the first one that is declared to have its shape: definitions compare these.

    None where no shape is declared.
    """
    shapes = [None if value is None else value.shape for value in (*node.inputs, *node.outputs)]
    for shape in shapes:
        yield None if shape is None else shapes.index(shape)
