"""Recurrent layers: a product for the inputs of all steps, then a kernel a direction whose stages are iterated.

Layouts: X [T, N, I], W [D, G*H, I], R [D, G*H, H], B [D, 2*G*H], states [D, N, H]; D directions, G gates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.ir.prim_builder import Access, Body, PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator, is_float
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.size_exprs import extent_expr
from landbridge.ir.types import shape_of
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.matrix_product import matrix_product
from landbridge.ops.recurrent_activations import Activation, activations_of
from landbridge.ops.slicing import part
from landbridge.records import record
from landbridge.sizes.size import Extent, at_least, undecided

#: Columns of R in a contiguous panel, so that a step reads its weights in the order of memory; several vectors on any
#: CPU.
PANEL = 64


@record(frozen=True, eq=False)
class Layer:
    """The operands of a node; None for those it omits."""

    x: Operand
    w: Operand
    r: Operand
    bias: Operand | None
    lengths: Operand | None
    states: Sequence[Operand | None]
    peepholes: Operand | None

    @staticmethod
    def of(x: Operand, w: Operand, r: Operand, optional: Sequence[Operand | None], states: int = 1) -> Layer:
        """Returns the layer with its ``optional`` operands, some or all of: B, sequence_lens, ``states`` initial
        states, P.
        """
        given = [*optional, *[None] * (5 - len(optional))]
        return Layer(x, w, r, given[0], given[1], given[2 : 2 + states], given[2 + states])


@record(frozen=True, eq=False)
class Direction:
    """Operands of one direction, rank lowered, and what its gates do."""

    inputs: Operand  # [T, N, G*H]: W x and the biases that are added to it alone
    r: Operand  # [G*H, H]
    bias: Operand | None  # [G*H] of the state, where the operator does not have it in ``inputs``
    states: list[Operand | None]  # [N, H] each, zero where None
    peepholes: Operand | None  # [3*H]
    valid: Operand | None  # [T, N], bool: whether a row of the batch has that step; all do where None
    activations: list[Activation]
    back: bool


def _multiplied(s: ScalarBuilder, total: Value, a: Value, b: Value) -> Value:
    return total + s.cast(a, total.dtype) * s.cast(b, total.dtype)


class StepWriter:
    """Writes the stages of one step of one direction; loops are iterations, batch and columns."""

    def __init__(self, p: PrimBuilder, steps: Extent, batch: Extent, hidden: int, back: bool) -> None:
        self._p, self._size, self._back = p, (steps, batch, hidden), back

    def time(self, t: Any) -> Any:
        """Returns the step that is done in iteration ``t``."""
        return extent_expr(self._size[0] - 1) - t if self._back else t

    def gates(self, buffer: SSAValue, values: Sequence[int]) -> list[Access]:
        """Returns reads of gates of ``[T, N, G*H]``, ``[N, G*H]`` or ``[G*H]``: gate g of unit h is in column ``g * H +
        h``.
        """
        rank, hidden = len(shape_of(buffer.type)), self._size[2]

        def at(gate: int) -> Access:
            return buffer, lambda t, n, h: [self.time(t), n, h + gate * hidden][3 - rank :]

        return [at(gate) for gate in values]

    def product(self, state: SSAValue, panels: SSAValue, result: SSAValue, term: Body = _multiplied) -> None:
        """Writes ``result`` [N, columns], the product of ``state`` [N, H] or [1, N, H] and ``panels`` of weights;
        ``term`` adds one term of H.
        """
        steps, batch, _ = self._size
        count, hidden, width = shape_of(panels.type)
        lead = [0] * (len(shape_of(state.type)) - 2)
        self._p.generic(
            "ppppr",
            (steps, batch, count, width, hidden),
            [(state, lambda t, n, q, m, k: [*lead, n, k]), (panels, lambda t, n, q, m, k: [q, k, m])],
            [(result, lambda t, n, q, m, k: [n, q * width + m])],
            term,
            init=0,
        )

    def each(self, columns: Extent, ins: Sequence[Access], out: SSAValue, body: Callable[..., Value]) -> None:
        """Writes an elementwise stage over ``columns`` of each row of ``out``."""
        self._p.generic("ppp", (*self._size[:2], columns), ins, [(out, lambda t, n, h: [n, h])], body)

    def over_all(self, state: SSAValue, out: SSAValue, body: Callable[..., Value]) -> None:
        """Writes ``out`` [1, 1]: all elements of ``state`` [1, N, H], combined by ``body`` from 0 on."""
        self._p.generic(
            "prr", self._size, [(state, lambda t, n, h: [0, n, h])], [(out, lambda t, n, h: [0, 0])], body, init=0
        )

    def stage(self, ins: Sequence[Access], outs: Sequence[Access], body: Callable[..., Any]) -> None:
        """Writes an elementwise stage over batch and units."""
        self._p.generic("ppp", self._size, ins, outs, body)

    def end(
        self,
        ins: Sequence[Access],
        y: SSAValue,
        states: Sequence[SSAValue],
        valid: SSAValue | None,
        body: Callable[..., Sequence[Value]],
    ) -> None:
        """Writes the last stage: ``body(s, *ins, *states)`` gives the next states, of which the first is the output.

        A row of the batch without this step keeps its states, and its output is 0.
        """
        old: list[Access] = [(b, lambda t, n, h: [0, n, h]) for b in states]
        lengths: list[Access] = [] if valid is None else [(valid, lambda t, n, h: [self.time(t), n])]

        def whole(s: ScalarBuilder, *v: Value) -> Sequence[Value]:
            given = v[: len(ins) + len(old)]
            new = body(s, *given)
            if not lengths:
                return [new[0], *new]
            retained = given[len(ins) :]
            return [s.select(v[-1], new[0], 0.0), *(s.select(v[-1], a, b) for a, b in zip(new, retained, strict=True))]

        self.stage([*ins, *old, *lengths], [(y, lambda t, n, h: [self.time(t), 0, n, h]), *old], whole)


#: ``write(iteration, buffers)``: writes the stages of a step.
Write: TypeAlias = Callable[[StepWriter, "Buffers"], None]


@record(frozen=True, eq=False)
class Cell:
    """The work of an operator in a step: its weights, its other inputs, shape and dtype of its scratch, its stages."""

    panels: Sequence[Operand]
    vectors: Sequence[Operand]
    scratch: Sequence[tuple[Sequence[Extent], str]]
    write: Write


@record(frozen=True, eq=False)
class Buffers:
    """The buffers of a step: those of a ``Cell``, and those that every step has."""

    inputs: SSAValue
    panels: Sequence[SSAValue]
    vectors: Sequence[SSAValue]
    valid: SSAValue | None
    y: SSAValue
    states: Sequence[SSAValue]
    scratch: Sequence[SSAValue]


#: ``product(c, x [T*N, I], direction) -> [T*N, G*H]``: the inputs by the weights.
Product: TypeAlias = Callable[[OpContext, Operand, int], Operand]
#: What an operator does in the steps of one direction.
MakeCell: TypeAlias = Callable[[OpContext, Direction], Cell]


def recur(
    c: OpContext,
    layer: Layer,
    defaults: Sequence[str],
    cell: MakeCell,
    separate: Sequence[int] = (),
    product: Product | None = None,
) -> list[Operand]:
    """Runs ``cell`` over time; returns Y [T, D, N, H], then the last states [D, N, H].

    Everything is computed in the accumulator of the dtype of ``layer.x``. ``defaults`` are the activations of one
    direction. ``separate``: the gates whose state bias is not simply added. ``product``: computes the product of inputs
    and weights, if it is not the usual one with ``layer.w``.
    """
    dtype, layer = c.dtype(layer.x), _prepared(c, layer)
    directions = c.shape(layer.w)[0]
    steps: Extent = c.shape(layer.x)[0]
    if steps == 0:
        return _of_no_step(c, layer, directions, dtype)
    if not at_least(steps, 1):  # without steps, the loop over steps writes nothing
        raise undecided(f"{c.g.node}: {steps} >= 1", steps, 1, needed=True)
    forms = activations_of(c, defaults, directions)
    valid = _valid(c, layer)
    runs = []
    for number in range(directions):
        d = _direction(c, layer, number, forms[number], valid, separate, product or _product_of(layer.w))
        runs.append(_run(c, d, cell(c, d)))
    y, *ends = (c.cast(_joined(c, parts, 0 if i else 1), dtype) for i, parts in enumerate(zip(*runs, strict=True)))
    if c.attribute("layout", 0):
        return [c.transpose(y, (2, 0, 1, 3)), *(c.transpose(v, (1, 0, 2)) for v in ends)]
    return [y, *ends]


def _of_no_step(c: OpContext, layer: Layer, directions: int, dtype: str) -> list[Operand]:
    """Returns zeros, as for a row of the batch without steps: as in onnxruntime, for any initial states."""
    batch, hidden = c.shape(layer.x)[1], c.shape(layer.r)[2]
    y, end = ((0, directions, batch, hidden), (directions, batch, hidden))
    if c.attribute("layout", 0):
        y, end = (batch, 0, directions, hidden), (batch, directions, hidden)
    ends = [c.compute("zeros", [], end, lambda s, *_: s.const(0.0, dtype), dtype) for _ in layer.states]
    return [c.g.reshape(c.g.constant(np.zeros(0, numpy_dtype(dtype))), y), *ends]


def _prepared(c: OpContext, layer: Layer) -> Layer:
    """Returns ``layer`` in the dtype of the computation, with time before the batch."""
    wide = accumulator(c.dtype(layer.x))
    x, w, r = (c.cast(v, wide) if is_float(c.dtype(v)) else v for v in (layer.x, layer.w, layer.r))
    given = (layer.bias, layer.peepholes, *layer.states)
    bias, peepholes, *states = (None if v is None else c.cast(v, wide) for v in given)
    if c.attribute("layout", 0):
        x = c.transpose(x, (1, 0, 2))
        states = [None if v is None else c.transpose(v, (1, 0, 2)) for v in states]
    return Layer(x, w, r, bias, layer.lengths, states, peepholes)


def _valid(c: OpContext, layer: Layer) -> Operand | None:
    """Returns which rows of the batch have which steps, [T, N]; None if all rows have all steps."""
    lengths, (steps, batch, _) = layer.lengths, c.shape(layer.x)
    if lengths is None:
        return None
    if isinstance(lengths, np.ndarray) and isinstance(steps, int):
        valid = np.arange(steps)[:, None] < lengths
        return None if valid.all() else valid
    return c.compute(
        "steps_of_rows",
        [lengths],
        (steps, batch),
        lambda s, buffers, at: s.cast(at[0], c.dtype(lengths)) < buffers[0].load(s, [at[1]]),
        "bool",
    )


def _product_of(w: Operand) -> Product:
    return lambda c, flat, number: matrix_product(c, flat, row_of(c, w, number), trans_b=True)


def _direction(
    c: OpContext,
    layer: Layer,
    number: int,
    activations: list[Activation],
    valid: Operand | None,
    separate: Sequence[int],
    multiply: Product,
) -> Direction:
    (steps, batch, inputs), (_, rows, hidden) = c.shape(layer.x), c.shape(layer.r)
    product = multiply(c, c.reshape(layer.x, (steps * batch, inputs)), number)
    bias = None
    if layer.bias is not None:
        both = c.reshape(row_of(c, layer.bias, number), (2, rows))
        bias = row_of(c, both, 1)
        added = np.ones(rows // hidden, bool)
        added[list(separate)] = False
        mask = np.repeat(added, hidden)
        product = c.elementwise(
            "add_bias", [product, _summed(c, row_of(c, both, 0), bias, mask)], lambda s, a, b: a + b
        )
    return Direction(
        c.reshape(product, (steps, batch, rows)),
        row_of(c, layer.r, number),
        bias,
        [None if v is None else row_of(c, v, number) for v in layer.states],
        None if layer.peepholes is None else row_of(c, layer.peepholes, number),
        valid,
        activations,
        c.attribute("direction", "forward") == "reverse" or number == 1,
    )


def row_of(c: OpContext, x: Operand, index: int) -> Operand:
    """Computes ``x[index]``."""
    shape = c.shape(x)
    start = [index] + [0] * (len(shape) - 1)
    return c.reshape(part(c, x, start, [1] * len(shape), (1, *shape[1:])), shape[1:])


def _summed(c: OpContext, first: Operand, second: Operand, mask: np.ndarray[Any, Any]) -> Operand:
    """Returns the sum of the biases of the input and of the state, the latter only where ``mask`` is set."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.asarray(np.where(mask, first + second, first))
    if mask.all():
        return c.elementwise("add", [first, second], lambda s, a, b: a + b)
    return c.elementwise("add", [first, second, mask], lambda s, a, b, m: s.select(m, a + b, a))


def panels_of(c: OpContext, r: Operand) -> Operand:
    """Returns ``r`` [columns, H] as [columns // width, H, width], in the order in which a step reads it."""
    columns, hidden = c.shape(r)
    width = PANEL if columns % PANEL == 0 else columns
    return c.transpose(c.reshape(r, (columns // width, width, hidden)), (0, 2, 1))


def _run(c: OpContext, d: Direction, cell: Cell) -> list[SSAValue]:
    """Returns one direction: its outputs [T, 1, N, H] in the order of time, and its last states [1, N, H]."""
    (steps, batch, _), hidden, dtype = c.shape(d.inputs), c.shape(d.r)[1], c.dtype(d.inputs)
    lengths = [] if d.valid is None else [d.valid]
    firsts = [v for v in d.states if v is not None]
    operands = [d.inputs, *cell.panels, *cell.vectors, *lengths, *firsts]
    count = len(operands) - len(firsts)

    def build(p: PrimBuilder) -> None:
        given = iter(p.inputs[count:])
        # A row that has no step at all ends, as in onnxruntime, with zeros.
        any_step: list[Access] = [] if d.valid is None else [(p.inputs[count - 1], lambda n, h: [0, n])]

        def first_state(s: ScalarBuilder, *v: Value) -> Value:
            return s.select(v[1], v[0], 0.0) if len(v) > 1 else v[0]

        for target, first in zip(p.outputs[1 : 1 + len(d.states)], d.states, strict=True):
            out: list[Access] = [(target, lambda n, h: [0, n, h])]
            if first is None:
                p.generic("pp", (batch, hidden), [], out, lambda s: s.const(0.0, dtype))
            else:
                p.generic("pp", (batch, hidden), [(next(given), lambda n, h: [n, h]), *any_step], out, first_state)

        def iteration(*buffers: SSAValue) -> None:
            taken = iter(buffers)

            def take(number: int) -> list[SSAValue]:
                return [next(taken) for _ in range(number)]

            inputs, panels, vectors = next(taken), take(len(cell.panels)), take(len(cell.vectors))
            valid = next(iter(take(len(lengths))), None)
            y, states, scratch = next(taken), take(len(d.states)), list(taken)
            cell.write(
                StepWriter(p, steps, batch, hidden, d.back), Buffers(inputs, panels, vectors, valid, y, states, scratch)
            )

        p.steps(steps, [*p.inputs[:count], *p.outputs], iteration)

    outputs: list[tuple[Sequence[Extent], str]] = [((steps, 1, batch, hidden), dtype)]
    outputs += [((1, batch, hidden), dtype)] * len(d.states)
    # Data that an iteration passes to the next stage are planned like all other tensors, for every size.
    outputs += cell.scratch
    name = f"{c.op_type.lower()}_steps"
    return c.g.call(name, [c.value(v) for v in operands], outputs, build)[: 1 + len(d.states)]


def _joined(c: OpContext, parts: Sequence[Operand], axis: int) -> Operand:
    return parts[0] if len(parts) == 1 else c.g.concat([c.value(v) for v in parts], axis)
