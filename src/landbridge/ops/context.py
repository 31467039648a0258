"""OpContext: the node that a handler imports, and the forms in which most operators are written."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.errors import ShapeError, UnsupportedOperatorError
from landbridge.executable.segments import READ
from landbridge.identity_map import IdentityMap
from landbridge.ir.broadcasting import broadcast_shape, repeated
from landbridge.ir.conversions import converted
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.graph_ops import DEFINES
from landbridge.ir.loop_builder import LoopBuilder
from landbridge.ir.op_attributes import NODE
from landbridge.ir.plain_attributes import int_array
from landbridge.ir.prim_builder import Body, PrimBuilder
from landbridge.ir.scalar_dtypes import meeting
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import dtype_of, element_count, shape_of
from landbridge.ops.extent_arrays import array_dtype
from landbridge.sizes.size import LARGEST_EXTENT, Extent, Size, agree, clamped, smallest

Array: TypeAlias = np.ndarray[Any, Any]
#: A value of the model: known now (an ndarray) or computed by the graph.
Operand: TypeAlias = SSAValue | Array


class OpContext:
    """One node while it is imported: a GraphBuilder, the operator's name, opset and attributes."""

    def __init__(
        self,
        g: GraphBuilder,
        op_type: str,
        opset: int,
        attributes: Mapping[str, Any],
        outputs: int = 1,
        names: IdentityMap[Array, str] | None = None,
    ) -> None:
        self.g = g
        self.op_type = op_type
        self.opset = opset
        self.attributes = attributes
        #: How many outputs the node uses, up to the last one with a name.
        self.outputs = outputs
        #: Names of the operands that are arrays.
        self.names: IdentityMap[Array, str] = IdentityMap() if names is None else names.copy()

    # Operands.

    def shape(self, x: Operand) -> tuple[int, ...]:
        """Returns the shape of an operand."""
        return x.shape if isinstance(x, np.ndarray) else shape_of(x.type)

    def rank(self, x: Operand) -> int:
        """Returns the number of dimensions of an operand."""
        return len(self.shape(x))

    def dtype(self, x: Operand) -> str:
        """Returns the dtype name of an operand."""
        return array_dtype(x) if isinstance(x, np.ndarray) else dtype_of(x.type)

    def value(self, x: Operand) -> SSAValue:
        """Returns the operand as a value of the graph; a constant goes into the constant table, under its own name."""
        if not isinstance(x, np.ndarray):
            return x
        if x.dtype == object:
            return self.g.extents(x)
        return self.g.constant(x, self.names.get(x) or self.g.node)

    def _named_as(self, x: Array, created: Array) -> Array:
        """Registers ``created``, made of ``x``, under the name of ``x``, by which a weight is placed, whatever its
        layout.
        """
        if x in self.names:
            self.names[created] = self.names[x]
        return created

    def constant(self, x: Operand | None, subject: str) -> Array:
        """Returns the operand as an ndarray; raises UnsupportedOperatorError when it is known only at run time."""
        if isinstance(x, SSAValue):
            x = self.g.whole.get(x, x)
        if isinstance(x, np.ndarray):
            return x
        count: Extent = 0 if x is None else element_count(shape_of(x.type))
        way = (
            f", and how many elements it has is open: {count}; state that in shapes=, or make it a constant"
            if isinstance(count, Size)
            else "; make it a constant, or fix the shapes it comes from"
        )
        error = self.unsupported(f"its {subject} is computed when the model runs{way}")
        error.needed = x
        raise error

    def within(self, subject: str, extent: Extent, low: int, high: Extent | None = None) -> Extent:
        """Returns ``extent``, that of ``subject``, checked to be within ``low`` and ``high``; a run with another is
        refused.
        """
        if not self.g.is_read(extent):
            return extent
        limited = self.limited(extent, low, high)
        self.g.held(subject, extent, smallest(limited, high) if isinstance(high, Size) else limited)
        return limited

    def limited(self, extent: Extent, low: int, high: Extent | None = None) -> Extent:
        """Returns ``extent``, which an input gives, clamped from ``low`` to the largest ``high``, as a separate number
        for proofs.
        """
        if not self.g.is_read(extent):
            return extent
        most = high.high if isinstance(high, Size) else high
        return clamped(extent, low, None if most is None else max(low, most))

    def fewest(self, *extents: Extent) -> int:
        """Returns the smallest extent that run-time values may give to ``extents``: 0, unless code is made for at least
        1.
        """
        return self.g.fewest(*extents)

    def check_may_be_cut(self) -> None:
        """Raises UnsupportedOperatorError where data may decide no extent of a result."""
        if self.g.is_nested:
            raise self.unsupported(
                "the data decide how large its result is, and it is in a branch that may not be taken"
            )
        if not self.g.data.are_legal:
            raise self.unsupported("the data decide how large its result is, and this target compiles known sizes only")

    def extent_read_from(self, count: SSAValue, high: int = LARGEST_EXTENT) -> Extent:
        """Makes a new dimension: the value of ``count``, a tensor of one int64, when it is computed, 0 to ``high``.

        The program is cut there. Raises UnsupportedOperatorError where that is not legal.
        """
        self.check_may_be_cut()
        extent = self.g.data.new(self.g.node, 0, high)
        self.g.host_call(READ, [count], [], {DEFINES: int_array([extent]), NODE: StringAttr(self.g.node)})
        return extent

    def axis(self, axis: int, rank: int) -> int:
        """Returns ``axis`` counted from the front; raises ShapeError when it is out of range."""
        if not -rank <= axis < max(rank, 1):
            raise ShapeError(f"{self.g.node}: axis {axis} of {self.op_type} is not in -{rank}..{rank - 1}")
        return axis % rank if rank else 0

    # Attributes.

    def attribute(self, name: str, default: Any = None) -> Any:
        """Returns an attribute: int, float, str, list of those, or ndarray. A float is an f32, as in models."""
        return self.attributes.get(name, float(np.float32(default)) if isinstance(default, float) else default)

    def ints(self, name: str, operand: Operand | None = None) -> list[int] | None:
        """Returns integers that are an input in newer opsets and an attribute in older ones."""
        if operand is not None:
            return self.constant(operand, name).reshape(-1).tolist()
        value = self.attributes.get(name)
        return None if value is None else [int(v) for v in value] if not isinstance(value, int) else [value]

    def unsupported(self, reason: str) -> UnsupportedOperatorError:
        """Returns the error that this node cannot be compiled, with the reason."""
        return UnsupportedOperatorError(f"{self.op_type} node {self.g.node!r}: {reason}")

    # Forms of operators.

    def elementwise(
        self,
        name: str,
        operands: Sequence[Operand],
        body: Body,
        dtype: str | None = None,
        depends_on: Hashable = None,
    ) -> Operand:
        """Computes ``body(s, *values)`` on every element with numpy broadcasting, as one PrimFunc.

        Constants of one element become scalars of the body. ``dtype`` of the result, else the first operand's.
        ``depends_on``: what ``body`` depends on beside ``name``, ``()`` for nothing else; nodes for which that is equal
        share a PrimFunc. None if it cannot be said.
        """
        # numpy returns a number, not an array, for arrays without axes.
        operands = [np.asarray(x) if isinstance(x, np.generic) else x for x in operands]
        shape, operands = self.broadcast(operands)
        result = dtype or self.dtype(operands[0])
        given = {result, *map(self.dtype, operands)}
        dtypes = [meeting(self.dtype(x), given) for x in operands]
        scalar = [isinstance(x, np.ndarray) and x.size == 1 for x in operands]
        if all(scalar):
            scalar[0] = False
        inputs = [self.value(x) for x, s in zip(operands, scalar, strict=True) if not s]

        def baked(s: ScalarBuilder, *values: Value) -> Value | Sequence[Value]:
            left = iter(values)
            # A tensor promotes with the scalars' dtypes too, which the PrimFunc's operands do not show, and so do
            # results.
            created = body(
                s,
                *(
                    s.const(x.reshape(-1).tolist()[0], t)
                    if isinstance(x, np.ndarray) and fixed
                    else s.cast(next(left), t)
                    for x, t, fixed in zip(operands, dtypes, scalar, strict=True)
                ),
            )
            joined = meeting(result, given)
            results = [created] if isinstance(created, Value) else created
            return [s.cast(v, result) if v.dtype == joined else v for v in results]

        key = None
        if depends_on is not None:
            scalars = [
                _bits(x) if isinstance(x, np.ndarray) and s else None for x, s in zip(operands, scalar, strict=True)
            ]
            key = (depends_on, result, tuple(dtypes), tuple(sorted(given)), tuple(scalars))
        return self.g.reshape(self.g.elementwise(name, inputs, baked, result, key), shape)

    def broadcast(self, operands: Sequence[Operand], retained: int = 0) -> tuple[tuple[Extent, ...], list[Operand]]:
        """Returns the shape that operands broadcast to, but for the ``retained`` last axes of each, and the operands,
        those repeated that may be 1 in a run along an axis that has more (``ir/broadcasting.py``).

        Raises ShapeError where they do not broadcast.
        """
        shapes = [self.shape(x)[: self.rank(x) - retained] for x in operands]
        try:
            shape = broadcast_shape(self.g, shapes, [isinstance(x, np.ndarray) for x in operands])
        except ValueError as error:
            raise ShapeError(
                f"{self.g.node}: {self.op_type} of shapes {', '.join(map(str, map(self.shape, operands)))} does not "
                "broadcast"
            ) from error
        return shape, [self.repeated(x, shape, f"operand {i}", retained) for i, x in enumerate(operands)]

    def repeated(self, x: Operand, shape: Sequence[Extent], subject: str, retained: int = 0) -> Operand:
        """Returns ``x``, which broadcasts to ``shape`` but for its ``retained`` last axes, repeated along axes that may
        be 1 in a run. ``subject`` names it in the error of a run in which it does not fit.
        """
        if isinstance(x, np.ndarray):
            return x
        owned = self.shape(x)
        return repeated(self.g, x, (*shape, *owned[len(owned) - retained :]), subject)

    def function(self, name: str, operands: Sequence[Operand], body: Body, depends_on: Hashable = None) -> Operand:
        """Computes ``elementwise`` of operands of one dtype by several operations: 16-bit floats are computed in f32
        and rounded once.
        """
        dtype = self.dtype(operands[0])
        if dtype not in ("float16", "bfloat16"):
            return self.elementwise(name, operands, body, depends_on=depends_on)

        def in_single(s: ScalarBuilder, *values: Value) -> Value:
            result = body(s, *(s.cast(v, "float32") for v in values))
            assert isinstance(result, Value)
            return s.cast(result, dtype)

        key = None if depends_on is None else ("in float32", depends_on)
        return self.elementwise(name, operands, in_single, depends_on=key)

    def gather(
        self,
        name: str,
        x: Operand,
        shape: Sequence[Extent],
        access: Callable[..., Sequence[Any]],
        depends_on: Hashable = None,
    ) -> SSAValue:
        """Makes a tensor of ``shape`` whose element at (d0, d1, ...) is ``x`` at the affine ``access(d0, d1, ...)``.

        ``depends_on``: what ``access`` depends on beside the two shapes and ``name``, as for ``elementwise``.
        """
        rank = len(shape)

        def build(p: PrimBuilder) -> None:
            p.generic("p" * rank, shape, [(p.inputs[0], access)], [(p.outputs[0], lambda *d: d)], lambda s, v: v)

        return self.g.call(name, [self.value(x)], [(shape, self.dtype(x))], build, depends_on)[0]

    def compute(
        self,
        name: str,
        operands: Sequence[Operand],
        shape: Sequence[Extent],
        body: Callable[..., Value],
        dtype: str,
        depends_on: Hashable = None,
    ) -> SSAValue:
        """Makes a tensor of ``shape``, each element from ``body(s, buffers, indices)``, which loads what it needs.

        ``depends_on``: what ``body`` depends on beside the types and ``name``, as for ``elementwise``.
        """
        rank = len(shape)

        def build(p: PrimBuilder) -> None:
            buffers = [BodyBuffer(b, p.dtype(b)) for b in p.inputs]

            def at_point(s: ScalarBuilder, *_: Value) -> Value:
                return body(s, buffers, [s.index(d) for d in range(rank)])

            p.generic("p" * rank, shape, [], [(p.outputs[0], lambda *d: d)], at_point)

        return self.g.call(name, [self.value(x) for x in operands], [(shape, dtype)], build, depends_on)[0]

    def reshape(self, x: Operand, shape: Sequence[Extent]) -> Operand:
        """Returns the operand in another shape of as many elements; raises ShapeError when the numbers differ."""
        if not agree(element_count(shape), element_count(self.shape(x))):
            raise ShapeError(f"{self.op_type} node {self.g.node!r}: {self.shape(x)} cannot become {tuple(shape)}")
        return (
            self._named_as(x, x.reshape(cast(Sequence[int], shape)))
            if isinstance(x, np.ndarray)
            else self.g.reshape(x, shape)
        )

    def transpose(self, x: Operand, order: Sequence[int]) -> Operand:
        """Returns the operand with its axes in ``order``; it is a view when only axes of extent 1 move."""
        if isinstance(x, np.ndarray):
            return self._named_as(x, np.ascontiguousarray(x.transpose(order)))
        old = self.shape(x)
        shape = [old[a] for a in order]
        moving = [a for a in order if old[a] != 1]
        if moving == sorted(moving):
            return self.g.reshape(x, shape)
        where = {a: i for i, a in enumerate(order)}
        return self.gather("transpose", x, shape, lambda *d: [d[where[a]] for a in range(len(old))], tuple(order))

    def cast(self, x: Operand, dtype: str, *, saturate: bool = True) -> Operand:
        """Returns the operand converted as C does, floats beyond the range of integers to its ends and NaN to 0; itself
        when it has that dtype. ``saturate``: as ``converted`` has it, for constants of eight bits.
        """
        if self.dtype(x) == dtype:
            return x
        if isinstance(x, np.ndarray) and x.dtype != object:
            return self._named_as(x, converted(x, numpy_dtype(dtype), saturate=saturate))
        created = self.elementwise("cast", [x], lambda s, v: s.cast(v, dtype), dtype, ())
        if isinstance(x, np.ndarray) and isinstance(created, SSAValue):
            self.g.whole[created] = x
        return created

    def whole(self, x: Operand) -> list[Extent] | None:
        """Returns the elements of an integer operand that is constant, or made of extents; None for another."""
        if isinstance(x, SSAValue):
            x = self.g.whole.get(x, np.zeros(()))
            return x.reshape(-1).tolist() if x.dtype == object else None
        if x.dtype == object or x.dtype.kind in "iu":
            return cast(list[Extent], x.reshape(-1).tolist())
        values = x.reshape(-1).tolist()
        return [int(n) for n in values] if all(float(n).is_integer() for n in values) else None


def _bits(scalar: np.ndarray[Any, Any]) -> Hashable:
    """Returns a key of a constant of one element: numbers that compare equal may be different scalars."""
    return scalar.item() if scalar.dtype == object else (scalar.dtype.str, scalar.tobytes())


class BodyBuffer:
    """A memref that a body loads from, or stores to."""

    __slots__ = ("_dtype", "_memref")

    def __init__(self, memref: SSAValue, dtype: str) -> None:
        self._memref, self._dtype = memref, dtype

    @property
    def rank(self) -> int:
        """Returns the number of axes."""
        return len(shape_of(self._memref.type))

    def fill(self, s: LoopBuilder, value: float | int) -> None:
        """Writes ``value`` to all elements, in a forall."""
        s.fill(self._memref, s.const(value, self._dtype))

    def load(self, s: ScalarBuilder, indices: Sequence[Value | int]) -> Value:
        """Returns the element at computed indices, which must be in bounds."""
        return s.load(self._memref, indices, self._dtype)

    def store(self, s: ScalarBuilder, indices: Sequence[Value | int], value: Value) -> None:
        """Writes the element at computed indices, which must be in bounds, in a stage that is iterated or a forall."""
        s.store(self._memref, indices, s.cast(value, self._dtype))
