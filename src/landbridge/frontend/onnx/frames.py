"""Frames: inputs that arrive in another dtype, layout, size or row pitch than the model takes.

The argument of ``@main`` is one flat array of all elements that the frame spans. One PrimFunc reads it by its strides,
converts and normalizes it, and writes what the model takes. Later operations are fused with it as with any other call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.ir import Attribute, SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.errors import InputError
from landbridge.frontend.input_spec import InputSpec, Resize
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.main_attributes import FrameLayout
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalar_dtypes import is_float
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.size_exprs import extent_expr
from landbridge.ir.types import tensor_type
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.formulas import Formulas, table
from landbridge.ops.slicing import index_within
from landbridge.records import record
from landbridge.shapes.strides import row_major, same_layout, span
from landbridge.sizes.size import Extent

Array: TypeAlias = np.ndarray[Any, Any]


@record(frozen=True)
class InputFrame:
    """The frame of input ``name``, and the model's input that is computed from it: ``model_shape`` of ``model_dtype``.

    ``strides`` and ``extents`` are those of the frame, in the order of the model's axes.
    """

    name: str
    spec: InputSpec
    dtype: str
    shape: tuple[Extent, ...]
    frame_strides: tuple[Extent, ...]
    extents: tuple[Extent, ...]
    strides: tuple[Extent, ...]
    model_shape: tuple[Extent, ...]
    model_dtype: str

    @property
    def type(self) -> Attribute:
        """Returns the type of the argument of ``@main``."""
        return tensor_type((span(*_values(self.shape, self.frame_strides)),), self.dtype)

    @property
    def layout(self) -> FrameLayout:
        """Returns shape and strides of the frame, for an attribute of ``@main``."""
        shape, strides = _values(self.shape, self.frame_strides)
        return shape, () if same_layout(shape, strides, row_major(shape)) else strides


def _values(*extents: tuple[Extent, ...]) -> tuple[tuple[int, ...], ...]:
    """Returns extents, typed as the ints that they behave like."""
    return cast(tuple[tuple[int, ...], ...], extents)


def frame_of(
    name: str, spec: InputSpec, frame: tuple[Extent, ...] | None, shape: tuple[Extent, ...], dtype: str
) -> InputFrame:
    """Returns the frame that ``spec`` declares for input ``name`` of a model, ``shape`` of ``dtype``; ``frame`` is its
    shape.

    Raises InputError if it does not fit.
    """
    try:
        extents = spec.frame_shape(shape, frame)
        strides = spec.frame_strides(extents)
        mean, scale = spec.per_channel(shape)
    except InputError as error:
        raise InputError(f"inputs: {name!r}: {error}") from error
    if not is_float(dtype) and (mean, scale) != ((0.0,), (1.0,)):
        raise InputError(
            f"inputs: {name!r}: the model takes {dtype}, which mean and scale do not make; leave them out, or change "
            "the model's input to a float dtype"
        )
    order = [spec.axes(len(shape)).index(letter) for letter in spec.model_axes(len(shape))]
    return InputFrame(
        name,
        spec,
        spec.dtype or dtype,
        extents,
        strides,
        tuple(extents[a] for a in order),
        tuple(strides[a] if extents[a] not in (0, 1) else 0 for a in order),
        shape,
        dtype,
    )


def read_frame(g: GraphBuilder, argument: SSAValue, frame: InputFrame) -> SSAValue | Array:
    """Returns the model's input, computed from the frame ``argument``."""
    shape = frame.model_shape
    if 0 in shape:
        return np.zeros(_values(shape)[0], numpy_dtype(frame.model_dtype))
    reader = _Reader(g, argument, frame)
    rank = len(shape)

    def build(p: PrimBuilder) -> None:
        ins = list(zip(p.inputs, reader.accesses, strict=True))
        if not reader.is_affine:  # the body itself loads from it
            del ins[0]
        body = partial(reader.body, p.inputs[0])
        p.generic("p" * rank, _values(shape)[0], ins, [(p.outputs[0], lambda *d: d)], body)

    outer, g.node = g.node, f"{frame.name}:frame"
    try:
        return g.call("frame", reader.operands, [(_values(shape)[0], frame.model_dtype)], build)[0]
    finally:
        g.node = outer


class _Reader:
    """Writes the body that reads a frame. ``operands`` are the frame, then tables; ``accesses`` are the maps that read
    them.
    """

    def __init__(self, g: GraphBuilder, argument: SSAValue, frame: InputFrame) -> None:
        shape = frame.model_shape
        self._g, self._frame = g, frame
        self._inner = frame.model_dtype if frame.model_dtype == "float64" else "float32"
        c = OpContext(g, "InputSpec", 0, {})
        self._axes = [
            _axis(c, _Line(a, frame.strides[a], old, new), frame.spec.resize or "nearest", self._inner)
            for a, (old, new) in enumerate(zip(frame.extents, shape, strict=True))
        ]
        self.is_affine = all(axis.step is not None for axis in self._axes)
        self.operands = [argument]
        self.accesses: list[Callable[..., Sequence[Any]]] = [self._location]
        #: For each axis, the operands with the offsets of its taps, and with the weight of the second tap.
        self._tables = {axis.line.axis: self._table(axis) for axis in self._axes if axis.step is None}
        mean, scale = frame.spec.per_channel(shape)
        self._steps = [
            (kind, self._moment(subject, values))
            for kind, subject, values, neutral in (("sub", "mean", mean, 0.0), ("mul", "scale", scale, 1.0))
            if values != (neutral,)
        ]

    def _location(self, *dims: Any) -> Sequence[Any]:
        return [sum((axis.at(dims[axis.line.axis]) for axis in self._axes), 0)]

    def _operand(self, values: Operand, subject: str, axis: int) -> int:
        """Add a tensor with an element for each index of ``axis``; returns its number among the operands after the
        frame.
        """
        if isinstance(values, np.ndarray):
            values = self._g.constant(values, f"{self._frame.name}_{subject}")
        self.operands.append(values)
        self.accesses.append(lambda *dims: [dims[axis]])
        return len(self.operands) - 2

    def _table(self, axis: _Axis) -> tuple[int, ...]:
        letter = self._frame.spec.model_axes(len(self._axes))[axis.line.axis]
        return tuple(
            self._operand(values, f"{letter}_{subject}", axis.line.axis)
            for subject, values in zip(("low", "high", "weight"), axis.tables, strict=False)
        )

    def _moment(self, subject: str, values: tuple[float, ...]) -> float | int:
        """Returns one number, or the operand that has one for each channel."""
        if len(values) == 1:
            return values[0]
        channel = self._frame.spec.model_axes(len(self._axes)).index("C")
        return self._operand(np.array(values, numpy_dtype(self._inner)), subject, channel)

    def body(self, source: SSAValue, s: ScalarBuilder, *values: Value) -> Value:
        """Returns the model's element at the loop indices; ``values`` are those of the operands that are accessed."""
        tables = values
        if self.is_affine:
            value, tables = values[0], values[1:]
        else:
            fixed = [
                s.index(a.line.axis) * (a.step * a.line.stride) + a.first for a in self._axes if a.step is not None
            ]
            value = self._sampled(s, source, tables, [a for a in self._axes if a.step is None], fixed)
        for kind, moment in self._steps:
            value = s.binary(kind, s.cast(value, self._inner), tables[moment] if type(moment) is int else moment)
        if any(axis.blends for axis in self._axes) and not is_float(self._frame.model_dtype):
            value = s.math("round_even", value)
        return s.cast(value, self._frame.model_dtype)

    def _sampled(
        self, s: ScalarBuilder, source: SSAValue, tables: Sequence[Value], axes: Sequence[_Axis], terms: Sequence[Value]
    ) -> Value:
        """Returns the value of the frame at the sum of ``terms``, interpolated between the taps of ``axes``."""
        if not axes:
            value = s.load(source, [reduce(add, terms)], self._frame.dtype)
            return s.cast(value, self._inner) if any(axis.blends for axis in self._axes) else value
        low, *blend = (tables[n] for n in self._tables[axes[0].line.axis])
        extent = (axes[0].line.old - 1) * axes[0].line.stride + 1
        first = self._sampled(s, source, tables, axes[1:], [*terms, index_within(s, low, extent)])
        if not blend:
            return first
        high, weight = blend
        second = self._sampled(s, source, tables, axes[1:], [*terms, index_within(s, high, extent)])
        return first + (second - first) * weight


@record(frozen=True)
class _Line:
    """One axis: ``new`` elements in the model, and in the frame ``old`` elements with a stride of ``stride``."""

    axis: int
    stride: Extent
    old: Extent
    new: Extent


@record(frozen=True, eq=False)
class _Axis:
    """How elements of the model along one axis are read from the frame.

    If ``step`` is not None, element i is at offset ``first + i * step``. Otherwise ``tables`` has the offset of each,
    or the offsets of two and the weight of the second.
    """

    line: _Line
    step: int | None
    first: Extent = 0
    tables: tuple[Operand, ...] = ()

    @property
    def blends(self) -> bool:
        """Returns whether each element is interpolated between two of the frame."""
        return len(self.tables) > 1

    def at(self, index: Any) -> Any:
        """Returns the offset of the element at ``index``, if there is a step."""
        assert self.step is not None
        return index * extent_expr(self.step * self.line.stride) + extent_expr(self.first)


def _axis(c: OpContext, line: _Line, resize: Resize, inner: str) -> _Axis:
    """Returns the taps at half-pixel centers: the source coordinate is ``(index + 0.5) * old / new - 0.5`` (ONNX
    Resize).
    """
    if line.old == line.new:
        return _Axis(line, 1)

    def position(f: Formulas, i: Any) -> Any:
        old, new = f.number(line.old), f.number(line.new)
        at = f.within((i + 0.5) * (old / new) - 0.5, 0.0, old - 1.0)
        return f.ceil(at - 0.5) if resize == "nearest" else at  # round_prefer_floor

    def weight(f: Formulas, i: Any) -> Any:
        return position(f, i) - f.floor(position(f, i))

    def location(f: Formulas, i: Any, further: float = 0.0) -> Any:
        last = f.number(line.old) - 1.0
        return f.within(f.floor(position(f, i)) + further, 0.0, last)

    def tabled(subject: str, formula: Callable[..., Any], dtype: str) -> Operand:
        return table(c, subject, [line.new], formula, dtype, line.old, line.stride)

    low, weights = tabled("frame_index", location, "int64"), tabled("frame_weight", weight, inner)
    blends = resize == "linear"
    if isinstance(low, np.ndarray) and isinstance(weights, np.ndarray):
        blends = bool(weights.any())
        steps = {int(step) for step in np.diff(low)} or {1}
        if len(steps) == 1 and not blends:
            return _Axis(line, steps.pop(), int(low[0]) * line.stride)
    last = (line.old - 1) * line.stride
    integers = "int32" if isinstance(last, int) and last < 1 << 31 else "int64"
    low, high = (
        tabled("frame_place", lambda f, i, n=further: location(f, i, n) * f.number(line.stride), integers)
        for further in (0.0, 1.0)
    )
    return _Axis(line, None, 0, (low, high, weights) if blends else (low,))
