"""RNN, GRU and LSTM, one step after another: a product for all inputs, then one product and one gate PrimFunc a step.

Layouts: X [T, N, I], W [D, G*H, I], R [D, G*H, H], B [D, 2*G*H], states [D, N, H]; D directions, G gates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value, accumulator
from landbridge.ops.accuracy import Accuracy, accuracy
from landbridge.ops.activation import softplus_of
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.legal import Condition, Legal, at_least, holds, one_of
from landbridge.ops.matmul import matrix_product
from landbridge.ops.registry import Handler, operator
from landbridge.ops.rules import rules
from landbridge.ops.slicing import part

Activation = Callable[[ScalarBuilder, Value], Value]


def _rules(
    gates: int, activations: int, cell: bool = False, attributes: Mapping[str, Legal] | None = None
) -> Callable[[Handler], Handler]:
    """The rules of an operator of so many gates and of activations for each direction."""
    return rules(
        "X: _ _ I",
        "W: D GH I",
        "R: D GH H",
        "B?: D _",
        "sequence_lens?: N",
        "initial_h?: _ _ H",
        *(("initial_c?: _ _ H", "P?: D _") if cell else ()),
        attributes={
            "direction": one_of("forward", "reverse", "bidirectional", default="forward"),
            "layout": one_of(0, 1, default=0),
            "hidden_size": at_least(1),
            "activations": holds(f"len(it) == {activations} * D", f"{activations} for each direction"),
            "clip": holds("it >= 0", "0 or more"),
            **(attributes or {}),
        },
        where=(
            Condition("D == (2 if direction == 'bidirectional' else 1)", "W is for the one direction, or for both"),
            Condition(f"H > 0 and GH == {gates} * H", f"W and R have {gates} * H rows, of H above 0"),
            "hidden_size == H",
            "B[1] == 2 * GH",
            "P[1] == 3 * H",
            Condition("N == X[0 if layout else 1]", "sequence_lens has a length for each of the batch of X"),
            Condition("X[1 if layout else 0] > 0", "the sequence has a step"),
            Condition(
                "initial_h[:2] == ((X[0], D) if layout else (D, X[1]))",
                "initial_h has the directions D and the batch of X",
            ),
            Condition(
                "initial_c[:2] == ((X[0], D) if layout else (D, X[1]))",
                "initial_c has the directions D and the batch of X",
            ),
        ),
    )


#: Of one step from its states as they are.
STEP = Accuracy(400, sums=True, note="of a step; the condition is 1 + the magnitudes of the terms of its gates")


@dataclass(frozen=True)
class _Direction:
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


def _recur(
    c: OpContext,
    x: Operand,
    w: Operand,
    r: Operand,
    bias: Operand | None,
    lengths: Operand | None,
    states: Sequence[Operand | None],
    peepholes: Operand | None,
    defaults: Sequence[str],
    step: Callable[[OpContext, _Direction, Operand, list[Operand]], list[Operand]],
) -> list[Operand]:
    """Run ``step(c, direction, W x [N, G*H], states)`` over time: Y [T, D, N, H], then the last states [D, N, H].

    Everything is computed in the accumulator of the dtype of ``x``.
    """
    dtype, wide = c.dtype(x), accumulator(c.dtype(x))
    x, w, r = c.cast(x, wide), c.cast(w, wide), c.cast(r, wide)
    bias, peepholes, *states = (None if v is None else c.cast(v, wide) for v in (bias, peepholes, *states))
    if c.attribute("layout", 0):
        x = c.transpose(x, (1, 0, 2))
        states = [None if v is None else c.transpose(v, (1, 0, 2)) for v in states]
    (steps, batch, _), directions, hidden = c.shape(x), c.shape(w)[0], c.shape(r)[2]
    if lengths is not None and not (c.constant(lengths, "sequence_lens") == steps).all():
        raise c.unsupported("sequence_lens shorter than the input cannot be compiled; pad outside, or drop them")
    forms = _activations(c, defaults, directions)
    outputs: list[list[Operand]] = []
    last: list[list[Operand]] = []
    zeros = np.zeros((batch, hidden), numpy_dtype(c.dtype(x)))
    c.g.budget.spend(steps * directions, f"{c.op_type} node {c.g.node!r}, of {steps} steps,")
    for d in range(directions):
        gates = c.shape(r)[1]
        both = None if bias is None else c.reshape(_rows(c, bias, d), (2, gates))
        direction = _Direction(
            _rows(c, w, d),
            _rows(c, r, d),
            None if both is None else (_rows(c, both, 0), _rows(c, both, 1)),
            [zeros if v is None else _rows(c, v, d) for v in states],
            None if peepholes is None else _rows(c, peepholes, d),
            forms[d],
            c.attribute("direction", "forward") == "reverse" or d == 1,
        )
        flat = c.reshape(x, (steps * batch, c.shape(x)[2]))
        projected = c.reshape(
            matrix_product(c, flat, direction.w, trans_b=True), (steps, batch, c.shape(direction.w)[0])
        )
        now, rows = list(direction.states), []
        for t in reversed(range(steps)) if direction.back else range(steps):
            now = step(c, direction, _rows(c, projected, t), now)
            rows.append(c.reshape(now[0], (1, 1, batch, hidden)))
        outputs.append(rows[::-1] if direction.back else rows)
        last.append([c.reshape(v, (1, batch, hidden)) for v in now])
    flat_rows = [outputs[d][t] for t in range(steps) for d in range(directions)]
    y = c.cast(c.reshape(_joined(c, flat_rows, 0), (steps, directions, batch, hidden)), dtype)
    ends = [c.cast(_joined(c, [last[d][i] for d in range(directions)], 0), dtype) for i in range(len(states))]
    if c.attribute("layout", 0):
        return [c.transpose(y, (2, 0, 1, 3)), *(c.transpose(v, (1, 0, 2)) for v in ends)]
    return [y, *ends]


def _joined(c: OpContext, parts: Sequence[Operand], axis: int) -> Operand:
    return parts[0] if len(parts) == 1 else c.g.concat([c.value(v) for v in parts], axis)


def _gates(
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


def _summed_bias(c: OpContext, d: _Direction) -> Operand | None:
    """The two biases added, where they always appear together."""
    if d.bias is None:
        return None
    first, second = d.bias
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.asarray(first + second)
    return c.elementwise("add", [first, second], lambda s, a, b: a + b)


@_rules(1, activations=1)
@operator("RNN")
@accuracy(STEP)
def rnn(
    c: OpContext,
    x: Operand,
    w: Operand,
    r: Operand,
    bias: Operand | None = None,
    lengths: Operand | None = None,
    state: Operand | None = None,
) -> Sequence[Operand]:
    """``h = f(W x + R h + b)``."""

    def step(c: OpContext, d: _Direction, wx: Operand, states: list[Operand]) -> list[Operand]:
        (f,), both = d.activations, _summed_bias(c, d)
        rh = matrix_product(c, states[0], d.r, trans_b=True)
        operands = [wx, rh] if both is None else [wx, rh, both]
        return [c.elementwise("rnn", operands, lambda s, a, b, t=None: f(s, a + b if t is None else a + b + t))]

    return _recur(c, x, w, r, bias, lengths, [state], None, ["Tanh"], step)


@_rules(4, activations=3, cell=True, attributes={"input_forget": one_of(0, 1)})
@operator("LSTM")
@accuracy(STEP)
def lstm(
    c: OpContext,
    x: Operand,
    w: Operand,
    r: Operand,
    bias: Operand | None = None,
    lengths: Operand | None = None,
    state: Operand | None = None,
    cell: Operand | None = None,
    peepholes: Operand | None = None,
) -> Sequence[Operand]:
    """Gates i, o, f, c."""
    forget = bool(c.attribute("input_forget", 0))

    def step(c: OpContext, d: _Direction, wx: Operand, states: list[Operand]) -> list[Operand]:
        f, g, h = d.activations
        both = _summed_bias(c, d)
        rh = matrix_product(c, states[0], d.r, trans_b=True)
        inputs: list[tuple[Operand, Sequence[int]]] = [(wx, range(4)), (rh, range(4)), (states[1], [0])]
        if both is not None:
            inputs.append((both, range(4)))
        if d.peepholes is not None:
            inputs.append((d.peepholes, range(3)))

        def body(s: ScalarBuilder, *v: Value) -> Sequence[Value]:
            gate, old, rest = [v[i] + v[4 + i] for i in range(4)], v[8], list(v[9:])
            if both is not None:
                gate = [a + rest.pop(0) for a in gate]
            if d.peepholes is not None:  # i, o, f
                gate[0], gate[2] = gate[0] + rest[0] * old, gate[2] + rest[2] * old
            i = f(s, gate[0])
            keep = 1.0 - i if forget else f(s, gate[2])
            new = keep * old + i * g(s, gate[3])
            out = gate[1] if d.peepholes is None else gate[1] + rest[1] * new
            return [f(s, out) * h(s, new), new]

        return list(_gates(c, "lstm", inputs, _pair(c, states[0]), 2, body))

    names = ["Sigmoid", "Tanh", "Tanh"]
    return _recur(c, x, w, r, bias, lengths, [state, cell], peepholes, names, step)


def _pair(c: OpContext, x: Operand) -> tuple[int, int]:
    rows, columns = c.shape(x)
    return rows, columns


@_rules(3, activations=2, attributes={"linear_before_reset": one_of(0, 1)})
@operator("GRU")
@accuracy(STEP)
def gru(
    c: OpContext,
    x: Operand,
    w: Operand,
    r: Operand,
    bias: Operand | None = None,
    lengths: Operand | None = None,
    state: Operand | None = None,
) -> Sequence[Operand]:
    """Gates z, r, h; ``linear_before_reset`` multiplies the reset gate after the product."""
    linear = bool(c.attribute("linear_before_reset", 0))

    def step(c: OpContext, d: _Direction, wx: Operand, states: list[Operand]) -> list[Operand]:
        f, g = d.activations
        old, hidden = states[0], c.shape(states[0])[1]
        size = _pair(c, old)
        biases: list[tuple[Operand, Sequence[int]]] = []
        if d.bias is not None:
            biases = [(d.bias[0], range(3)), (d.bias[1], range(3))]

        def gates(v: Sequence[Value]) -> tuple[list[Value], list[Value]]:
            """Biases of the input and of the state, zero where there are none."""
            return (list(v[:3]), list(v[3:6])) if v else ([], [])

        def plus(a: Value, biases: Sequence[Value], i: int) -> Value:
            return a + biases[i] if biases else a

        if linear:
            rh = matrix_product(c, old, d.r, trans_b=True)

            def whole(s: ScalarBuilder, *v: Value) -> Sequence[Value]:
                wb, rb = gates(v[7:])
                z = f(s, plus(plus(v[0] + v[3], wb, 0), rb, 0))
                reset = f(s, plus(plus(v[1] + v[4], wb, 1), rb, 1))
                n = g(s, plus(v[2], wb, 2) + reset * plus(v[5], rb, 2))
                return [(1.0 - z) * n + z * v[6]]

            inputs: list[tuple[Operand, Sequence[int]]] = [(wx, range(3)), (rh, range(3)), (old, [0]), *biases]
            return list(_gates(c, "gru", inputs, size, 1, whole))
        upper = part(c, d.r, [0, 0], [1, 1], [2 * hidden, hidden])
        lower = part(c, d.r, [2 * hidden, 0], [1, 1], [hidden, hidden])
        rh = matrix_product(c, old, upper, trans_b=True)

        def first(s: ScalarBuilder, *v: Value) -> Sequence[Value]:
            wb, rb = gates(v[6:])
            z = f(s, plus(plus(v[0] + v[3], wb, 0), rb, 0))
            reset = f(s, plus(plus(v[1] + v[4], wb, 1), rb, 1))
            return [z, reset * v[5]]

        z, reset = _gates(c, "gru_gates", [(wx, range(3)), (rh, range(2)), (old, [0]), *biases], size, 2, first)
        candidate = matrix_product(c, reset, lower, trans_b=True)

        def second(s: ScalarBuilder, *v: Value) -> Sequence[Value]:
            wb, rb = gates(v[6:])
            n = g(s, plus(plus(v[2] + v[3], wb, 2), rb, 2))
            return [(1.0 - v[4]) * n + v[4] * v[5]]

        inputs = [(wx, range(3)), (candidate, [0]), (z, [0]), (old, [0]), *biases]
        return list(_gates(c, "gru", inputs, size, 1, second))

    return _recur(c, x, w, r, bias, lengths, [state], None, ["Sigmoid", "Tanh"], step)
