"""Says for which operators the shapes of results without elements follow from those for other sizes.

A dimension that is 0 leaves most tensors of a program without elements. The result of most operators then has the shape
that it has for other sizes, with 0 in place of the dimension, whatever the operator computes. The tables say for which
operators, and on which axes, that is so. Any other node is imported as in every program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from landbridge.records import record
from landbridge.sizes.size import Extent

Shape: TypeAlias = tuple[Extent, ...]

#: Functions of operands that broadcast together.
BROADCAST = (
    *("Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual"),
    *("Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor"),
)
#: Functions of each element of the first operand; the others are parameters.
ELEMENTWISE = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Cast", "Ceil", "Celu", "Clip", "Cos"),
    *("Cosh", "DequantizeLinear", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish"),
    *("Identity", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not", "PRelu", "QuantizeLinear", "Reciprocal"),
    *("Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish"),
    *("Tan", "Tanh", "ThresholdedRelu"),
)
#: Operators whose first operand is a batch along its first axis; the others are parameters.
OF_BATCHES = (
    *("AveragePool", "BatchNormalization", "Conv", "ConvInteger", "ConvTranspose", "GlobalAveragePool"),
    *("GlobalMaxPool", "InstanceNormalization", "LRN", "MaxPool", "QLinearConv", "Resize"),
)
#: Operators on the axes of the first operand from ``axis`` on, or on the one at ``axis``; the others are parameters.
FROM_AXIS = ("LayerNormalization", "LogSoftmax", "Softmax")
#: Operators that reduce the axes ``axes``, an attribute or the second operand.
REDUCTIONS = ("ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
#: Layers of steps, whose batch is along the second axis.
RECURRENT = ("GRU", "LSTM", "RNN")
#: Products of the first two operands; the others are zero points.
PRODUCTS = ("MatMul", "MatMulInteger")
#: The first opset in which operands do not broadcast by an attribute.
_FIRST_OPSET = 7


@record(frozen=True, eq=False)
class EmptyNode:
    """A node of ONNX's own operators whose results have no elements, of the shapes ``results``, if these follow from
    those of the first program.

    ``operands`` had the shapes ``before`` in the first program and have those of ``now``, of the same ranks; None for
    an operand that is left out.
    """

    op_type: str
    opset: int
    attributes: Mapping[str, Any]
    operands: Sequence[Any]
    before: Sequence[Shape | None]
    now: Sequence[Shape | None]
    results: Sequence[Shape]

    def follows(self) -> bool:
        """Returns whether the node has ``results`` for certain."""
        test = _TESTS.get(self.op_type)
        return self.opset >= _FIRST_OPSET and test is not None and self.now[0] is not None and test(self)

    @property
    def x(self) -> Shape:
        """Returns the shape of the first operand."""
        shape = self.now[0]
        assert shape is not None
        return shape

    def changed(self, number: int = 0) -> set[int]:
        """Returns the axes of operand ``number`` that have not the extent that they have in the first program."""
        pairs = zip(self.before[number] or (), self.now[number] or (), strict=True)
        return {axis for axis, (before, now) in enumerate(pairs) if before != now}

    def keeps_parameters(self, first: int = 1) -> bool:
        """Returns whether the operands from ``first`` on have the shapes that they have in the first program."""
        return all(not self.changed(number) for number in range(first, len(self.now)))

    def axis(self, default: int) -> int:
        """Returns the attribute ``axis``, counted from the first axis."""
        axis = int(self.attributes.get("axis", default))
        return axis + len(self.x) if axis < 0 else axis


def _broadcast(shapes: Sequence[Shape | None], result: Shape) -> bool:
    """Returns whether ``shapes`` broadcast to ``result``, with nothing that a run has to test."""
    present = [shape for shape in shapes if shape is not None]
    if any(len(shape) > len(result) for shape in present):
        return False
    aligned = [(1,) * (len(result) - len(shape)) + shape for shape in present]
    return all(
        wanted in extents and all(extent in (1, wanted) for extent in extents)
        for wanted, *extents in zip(result, *aligned, strict=True)
    )


def _of_broadcast(node: EmptyNode) -> bool:
    return _broadcast(node.now, node.results[0])


def _of_elements(node: EmptyNode) -> bool:
    return node.keeps_parameters() and node.results[0] == node.x


def _of_batch(node: EmptyNode) -> bool:
    return node.keeps_parameters() and node.changed() == {0}


def _from_axis(node: EmptyNode) -> bool:
    axis = node.axis(1 if node.opset < 13 and node.op_type != "LayerNormalization" else -1)
    return node.keeps_parameters() and all(changed < axis for changed in node.changed())


def _of_reduction(node: EmptyNode) -> bool:
    axes = node.attributes.get("axes")
    if axes is None and len(node.operands) > 1 and isinstance(node.operands[1], np.ndarray):
        axes = node.operands[1].reshape(-1).tolist()
    reduced = {axis + len(node.x) if axis < 0 else axis for axis in map(int, axes or ())}
    return bool(reduced) and node.keeps_parameters() and reduced.isdisjoint(node.changed())


def _of_steps(node: EmptyNode) -> bool:
    """Returns whether the batch alone has changed: the axis 1 of data and states, and the only one of lengths."""
    batch = [{1}, set(), set(), set(), {0}, {1}, {1}, set()]
    is_batch = all(node.changed(number) <= batch[number] for number in range(len(node.now)))
    return not node.attributes.get("layout", 0) and is_batch


def _of_product(node: EmptyNode) -> bool:
    a, b = node.now[:2]
    if a is None or b is None or len(a) < 2 or len(b) < 2:
        return False
    result = node.results[0]
    summed = {len(a) - 1}, {len(b) - 2}
    is_summed = any(not axes.isdisjoint(node.changed(number)) for number, axes in enumerate(summed))
    fits = len(result) == max(len(a), len(b)) and (result[-2], result[-1]) == (a[-2], b[-1])
    return not is_summed and node.keeps_parameters(2) and fits and _broadcast((a[:-2], b[:-2]), result[:-2])


def _of_rows(node: EmptyNode) -> bool:
    return node.keeps_parameters() and node.changed() == {0} and not node.attributes.get("transA", 0)


def _of_transpose(node: EmptyNode) -> bool:
    order = node.attributes.get("perm") or range(len(node.x))[::-1]
    return node.results[0] == tuple(node.x[axis] for axis in order)


def _of_concat(node: EmptyNode) -> bool:
    (result, *_), axis = node.results, node.axis(0)
    return all(
        shape is not None
        and len(shape) == len(result)
        and axis not in node.changed(number)
        and all(a == b for i, (a, b) in enumerate(zip(shape, result, strict=True)) if i != axis)
        for number, shape in enumerate(node.now)
    )


_TESTS: dict[str, Callable[[EmptyNode], bool]] = {
    **dict.fromkeys(BROADCAST, _of_broadcast),
    **dict.fromkeys(ELEMENTWISE, _of_elements),
    **dict.fromkeys(OF_BATCHES, _of_batch),
    **dict.fromkeys(FROM_AXIS, _from_axis),
    **dict.fromkeys(REDUCTIONS, _of_reduction),
    **dict.fromkeys(RECURRENT, _of_steps),
    **dict.fromkeys(PRODUCTS, _of_product),
    "Concat": _of_concat,
    "Gemm": _of_rows,
    "Transpose": _of_transpose,
}
