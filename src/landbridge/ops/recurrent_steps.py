"""Recurrent layers, unrolled: a product for all inputs, then one product and one gate PrimFunc a step.

Layouts: X [T, N, I], W [D, G*H, I], R [D, G*H, H], B [D, 2*G*H], states [D, N, H]; D directions, G gates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ops.activation import softplus_of
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.matmul import matrix_product
from landbridge.ops.shape import broadcast
from landbridge.ops.slicing import part

Activation: TypeAlias = Callable[[ScalarBuilder, Value], Value]
#: ``step(c, direction, W x [N, G*H], states) -> states``.
Step: TypeAlias = Callable[[OpContext, "Direction", Operand, list[Operand]], list[Operand]]


@dataclass(frozen=True, eq=False)
class Layer:
    """The operands of a node, None where they are left out."""

    x: Operand
    w: Operand
    r: Operand
    bias: Operand | None
    lengths: Operand | None
    states: Sequence[Operand | None]
    peepholes: Operand | None

    @staticmethod
    def of(x: Operand, w: Operand, r: Operand, optional: Sequence[Operand | None], states: int = 1) -> Layer:
        """``optional``, some or all of them: B, sequence_lens, so many initial states, P."""
        given = [*optional, *[None] * (5 - len(optional))]
        return Layer(x, w, r, given[0], given[1], given[2 : 2 + states], given[2 + states])


@dataclass(frozen=True, eq=False)
class Direction:
    """Operands of one direction, rank lowered to matrices, and what its gates do."""

    w: Operand  # [G*H, I]
    r: Operand  # [G*H, H]
    bias: tuple[Operand, Operand] | None  # [G*H] of the input, [G*H] of the state
    states: list[Operand]  # [N, H] each
    peepholes: Operand | None  # [3*H]
    activations: list[Activation]
    back: bool


def _activations(c: OpContext, defaults: Sequence[str], directions: int) -> list[list[Activation]]:
    """The activations of each direction."""
    names = [n.lower() for n in c.attribute("activations") or list(defaults) * directions]
    alphas = list(c.attribute("activation_alpha") or [])
    betas = list(c.attribute("activation_beta") or [])
    clip = c.attribute("clip")
    made = []
    for name in names:
        alpha = alphas.pop(0) if alphas and name in _WITH_ALPHA else _WITH_ALPHA.get(name, 0.0)
        beta = betas.pop(0) if betas and name in ("hardsigmoid", "affine", "scaledtanh") else 0.5
        made.append(_clipped(_activation(c, name, alpha, beta), clip))
    size = len(defaults)
    return [made[i * size : (i + 1) * size] for i in range(directions)]


_WITH_ALPHA = {
    "hardsigmoid": 0.2, "leakyrelu": 0.01, "elu": 1.0, "thresholdedrelu": 1.0, "affine": 1.0, "scaledtanh": 1.0
}  # fmt: skip


def _activation(c: OpContext, name: str, alpha: float, beta: float) -> Activation:
    table: dict[str, Activation] = {
        "sigmoid": lambda s, v: s.sigmoid(v),
        "tanh": lambda s, v: s.math("tanh", v),
        "relu": lambda s, v: s.maximum(v, 0.0),
        "affine": lambda s, v: v * alpha + beta,
        "leakyrelu": lambda s, v: s.select(v < 0, v * alpha, v),
        "thresholdedrelu": lambda s, v: s.select(v > alpha, v, 0.0),
        "scaledtanh": lambda s, v: s.math("tanh", v * beta) * alpha,
        "hardsigmoid": lambda s, v: s.minimum(s.maximum(v * alpha + beta, 0.0), 1.0),
        "elu": lambda s, v: s.select(v < 0, (s.exp(v) - 1.0) * alpha, v),
        "softsign": lambda s, v: v / (s.math("abs", v) + 1.0),
        "softplus": softplus_of,
    }
    if name not in table:
        raise c.unsupported(f"activation {name!r}; known: {', '.join(sorted(table))}")
    return table[name]


def _clipped(f: Activation, clip: float | None) -> Activation:
    if not clip:
        return f
    return lambda s, v: f(s, s.minimum(s.maximum(v, -clip), clip))


def _rows(c: OpContext, x: Operand, index: int) -> Operand:
    """``x[index]``."""
    shape = c.shape(x)
    start = [index] + [0] * (len(shape) - 1)
    return c.reshape(part(c, x, start, [1] * len(shape), (1, *shape[1:])), shape[1:])


def recur(c: OpContext, layer: Layer, defaults: Sequence[str], step: Step) -> list[Operand]:
    """Run ``step`` over time: Y [T, D, N, H], then the last states [D, N, H].

    Everything is computed in the accumulator of the dtype of ``layer.x``. ``defaults`` are the activations of one
    direction.
    """
    dtype, layer = c.dtype(layer.x), _prepared(c, layer)
    (steps, batch, _), directions, hidden = c.shape(layer.x), c.shape(layer.w)[0], c.shape(layer.r)[2]
    if layer.lengths is not None and not (c.constant(layer.lengths, "sequence_lens") == steps).all():
        raise c.unsupported("sequence_lens shorter than the input cannot be compiled; pad outside, or drop them")
    forms = _activations(c, defaults, directions)
    zero = np.zeros((1, hidden), numpy_dtype(c.dtype(layer.x)))
    zeros = np.repeat(zero, batch, 0) if isinstance(batch, int) else broadcast(c, zero, (batch, hidden))
    c.g.budget.spend(steps * directions, f"{c.op_type} node {c.g.node!r}, of {steps} steps,")
    runs = [_run(c, layer.x, _direction(c, layer, d, forms[d], zeros), step) for d in range(directions)]
    flat_rows = [outputs[t] for t in range(steps) for outputs, _ in runs]
    y = c.cast(c.reshape(_joined(c, flat_rows, 0), (steps, directions, batch, hidden)), dtype)
    ends = [c.cast(_joined(c, [last[i] for _, last in runs], 0), dtype) for i in range(len(layer.states))]
    if c.attribute("layout", 0):
        return [c.transpose(y, (2, 0, 1, 3)), *(c.transpose(v, (1, 0, 2)) for v in ends)]
    return [y, *ends]


def _prepared(c: OpContext, layer: Layer) -> Layer:
    """``layer`` in the dtype that is computed in, time before the batch."""
    wide = accumulator(c.dtype(layer.x))
    x, w, r = c.cast(layer.x, wide), c.cast(layer.w, wide), c.cast(layer.r, wide)
    given = (layer.bias, layer.peepholes, *layer.states)
    bias, peepholes, *states = (None if v is None else c.cast(v, wide) for v in given)
    if c.attribute("layout", 0):
        x = c.transpose(x, (1, 0, 2))
        states = [None if v is None else c.transpose(v, (1, 0, 2)) for v in states]
    return Layer(x, w, r, bias, layer.lengths, states, peepholes)


def _direction(c: OpContext, layer: Layer, number: int, activations: list[Activation], zeros: Operand) -> Direction:
    both = None if layer.bias is None else c.reshape(_rows(c, layer.bias, number), (2, c.shape(layer.r)[1]))
    return Direction(
        _rows(c, layer.w, number),
        _rows(c, layer.r, number),
        None if both is None else (_rows(c, both, 0), _rows(c, both, 1)),
        [zeros if v is None else _rows(c, v, number) for v in layer.states],
        None if layer.peepholes is None else _rows(c, layer.peepholes, number),
        activations,
        c.attribute("direction", "forward") == "reverse" or number == 1,
    )


def _run(c: OpContext, x: Operand, direction: Direction, step: Step) -> tuple[list[Operand], list[Operand]]:
    """One direction: its outputs [1, 1, N, H] in the order of time, and its last states [1, N, H]."""
    (steps, batch, inputs), (gates, hidden) = c.shape(x), c.shape(direction.r)
    flat = c.reshape(x, (steps * batch, inputs))
    projected = c.reshape(matrix_product(c, flat, direction.w, trans_b=True), (steps, batch, gates))
    now, rows = list(direction.states), []
    for t in reversed(range(steps)) if direction.back else range(steps):
        now = step(c, direction, _rows(c, projected, t), now)
        rows.append(c.reshape(now[0], (1, 1, batch, hidden)))
    return rows[::-1] if direction.back else rows, [c.reshape(v, (1, batch, hidden)) for v in now]


def _joined(c: OpContext, parts: Sequence[Operand], axis: int) -> Operand:
    return parts[0] if len(parts) == 1 else c.g.concat([c.value(v) for v in parts], axis)


def gate_values(
    c: OpContext,
    name: str,
    inputs: Sequence[tuple[Operand, Sequence[int]]],
    shape: tuple[int, int],
    count: int,
    body: Callable[..., Sequence[Value]],
) -> list[SSAValue]:
    """One PrimFunc over [N, H]: each input is read once for each of its gates, at column ``gate * H + h``."""
    hidden = shape[1]

    def column(buffer: SSAValue, rank: int, gate: int) -> tuple[SSAValue, Any]:
        return buffer, (lambda n, h: [n, h + gate * hidden]) if rank == 2 else (lambda n, h: [h + gate * hidden])

    def build(p: PrimBuilder) -> None:
        ins = [
            column(buffer, c.rank(x), gate)
            for buffer, (x, gates) in zip(p.inputs, inputs, strict=True)
            for gate in gates
        ]
        p.generic("pp", shape, ins, [(b, lambda n, h: [n, h]) for b in p.outputs], body)

    outputs = [(shape, c.dtype(inputs[0][0]))] * count
    return c.g.call(name, [c.value(x) for x, _ in inputs], outputs, build)


def summed_bias(c: OpContext, d: Direction) -> Operand | None:
    """The two biases added, where they always appear together."""
    if d.bias is None:
        return None
    first, second = d.bias
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.asarray(first + second)
    return c.elementwise("add", [first, second], lambda s, a, b: a + b)


def matrix_shape(c: OpContext, x: Operand) -> tuple[int, int]:
    rows, columns = c.shape(x)
    return rows, columns
