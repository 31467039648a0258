"""EarlierWalks: what walks of a model have computed that later walks of it take over.

Programs for other sizes are walks of the same model. The constants that its nodes compute are the same in all of them.
In a program for extents of 0, most tensors have no elements, so that only their shapes are needed: they follow from
the shapes in the first program (``empty_results``), and no kernels are built.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir
from xdsl.ir import SSAValue

from landbridge.frontend.onnx.attributes import tensor_array
from landbridge.frontend.onnx.empty_results import EmptyNode, Shape
from landbridge.frontend.onnx.values import ImportedValue, has_no_elements
from landbridge.ir.types import dtype_of, shape_of
from landbridge.records import record
from landbridge.sizes.replaced import replaced
from landbridge.sizes.size import Extent, Size, dimensions_of

Array: TypeAlias = np.ndarray[Any, Any]

#: The most bytes of the constants that one node computes and that are kept: others are computed again.
_MOST_BYTES = 1 << 16


@record(eq=False)
class EarlierWalks:
    """What walks of the main graph of one model have computed.

    ``initializers``: their arrays. ``folded``: the constant operands of nodes, with the results. ``values``: the values
    of the last complete walk. ``tensors``: the shapes and dtypes of the values of the first program, with no dtype for
    constants; empty until that program exists. ``attributes``: keys of the nodes' attributes (``RepeatedNodes``).
    """

    initializers: dict[ir.Value, Array] = field(default_factory=dict)
    folded: dict[ir.Node, tuple[list[Array | None], list[Array]]] = field(default_factory=dict)
    values: Mapping[ir.Value, ImportedValue] = field(default_factory=dict)
    tensors: dict[ir.Value, tuple[Shape, str]] = field(default_factory=dict)
    attributes: dict[ir.Node, Hashable] = field(default_factory=dict)

    def begin_others(self) -> None:
        """Take the last complete walk as that of the first program; later ones are for other sizes."""
        for value, found in self.values.items():
            if isinstance(found, SSAValue):
                self.tensors[value] = tuple(shape_of(found.type)), dtype_of(found.type)
            elif isinstance(found, np.ndarray) and found.dtype != object:
                self.tensors[value] = found.shape, ""
        self.values = {}

    def initializer(self, value: ir.Value) -> Array:
        """Returns the array of an initializer that has data: the same object in all walks."""
        assert value.const_value is not None
        if value not in self.initializers:
            self.initializers[value] = tensor_array(value.const_value)
        return self.initializers[value]

    def constants(self, node: ir.Node, operands: Sequence[Array | None]) -> list[Array] | None:
        """Returns the results of ``node`` for the same arrays as ``operands``; None if none were kept."""
        if node not in self.folded:
            return None
        given, results = self.folded[node]
        is_same = len(given) == len(operands) and all(a is b for a, b in zip(given, operands, strict=True))
        return results if is_same else None

    def keep(self, node: ir.Node, operands: Sequence[Array | None], results: list[Array]) -> None:
        """Keep the ``results`` of ``node`` for constant ``operands``, if they are small."""
        if sum(array.nbytes for array in results) <= _MOST_BYTES:
            self.folded[node] = list(operands), results

    def without_elements(
        self,
        node: ir.Node,
        opset: int,
        attributes: Mapping[str, Any],
        operands: Sequence[ImportedValue | None],
        known: Mapping[str, Extent],
    ) -> list[tuple[Shape, str]] | None:
        """Returns the shapes and dtypes of the results of ``node`` if none of them has elements, now that dimensions
        are ``known``, and if they follow from those of the first program; None otherwise.
        """
        if not self.tensors or node.domain or not any(map(has_no_elements, operands)):
            return None
        named = [value for value in node.outputs if value.name]
        if any(value not in self.tensors for value in (*named, *filter(None, node.inputs))):
            return None
        results = [(_now(shape, known), dtype) for shape, dtype in map(self.tensors.__getitem__, named)]
        if not all(dtype and 0 in shape for shape, dtype in results):
            return None
        before = [None if value is None else self.tensors[value][0] for value in node.inputs]
        now = [_shape(x) for x in operands]
        if any(a is not None and _now(a, known) != b for a, b in zip(before, now, strict=True)):
            return None  # the operands are not those of the first program with 0 in place of a dimension
        shapes = [shape for shape, _ in results]
        of_operands = dimensions_of(chain.from_iterable(shape or () for shape in now))
        if not dimensions_of(chain.from_iterable(shapes)).keys() <= of_operands.keys():
            return None  # a dimension that data decide, or that the node makes
        follows = EmptyNode(node.op_type, opset, attributes, operands, before, now, shapes).follows()
        return results if follows else None


def _shape(operand: Any) -> Shape | None:
    if isinstance(operand, np.ndarray):
        return None if operand.dtype == object else operand.shape
    return tuple(shape_of(operand.type)) if isinstance(operand, SSAValue) else None


def _now(shape: Shape, known: Mapping[str, Extent]) -> Shape:
    """Returns ``shape`` in terms of dimensions that are ``known`` now."""
    return tuple(replaced(e.terms, known) if isinstance(e, Size) else e for e in shape)
