"""RNN, GRU and LSTM: their rules, and what their gates do in one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.operators import Handler, kernel
from landbridge.ops.accuracy import Accuracy, accuracy
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.legal import Condition, Legal, at_least, holds, one_of
from landbridge.ops.recurrent_steps import Buffers, Cell, Direction, Layer, StepWriter, panels_of, recur
from landbridge.ops.rules import rules
from landbridge.ops.slicing import part


def _rules(
    gates: int, activations: int, cell: bool = False, attributes: Mapping[str, Legal] | None = None
) -> Callable[[Handler], Handler]:
    """Returns the rules of an operator of so many gates and of activations for each direction."""
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


def columns_of(c: OpContext, d: Direction, columns: int) -> tuple[tuple[int, ...], str]:
    """Returns shape and dtype of that many numbers for each row of the batch."""
    return (c.shape(d.inputs)[1], columns), c.dtype(d.inputs)


#: Of one step from its states as they are.
STEP = Accuracy(400, sums=True, note="of a step; the condition is 1 + the magnitudes of the terms of its gates")


@_rules(1, activations=1)
@kernel("", "RNN")
@accuracy(STEP)
def rnn(c: OpContext, x: Operand, w: Operand, r: Operand, *optional: Operand | None) -> Sequence[Operand]:
    """Computes ``h = f(W x + R h + b)``."""

    def cell(c: OpContext, d: Direction) -> Cell:
        (f,) = d.activations

        def write(t: StepWriter, b: Buffers) -> None:
            (rh,) = b.scratch
            t.product(b.states[0], b.panels[0], rh)
            ins = [*t.gates(b.inputs, [0]), *t.gates(rh, [0])]
            t.end(ins, b.y, b.states, b.valid, lambda s, wx, rh, old: [f(s, wx + rh)])

        return Cell([panels_of(c, d.r)], [], [columns_of(c, d, c.shape(d.r)[0])], write)

    return recur(c, Layer.of(x, w, r, optional), ["Tanh"], cell)


@_rules(4, activations=3, cell=True, attributes={"input_forget": one_of(0, 1)})
@kernel("", "LSTM")
@accuracy(STEP)
def lstm(c: OpContext, x: Operand, w: Operand, r: Operand, *optional: Operand | None) -> Sequence[Operand]:
    """Computes an LSTM with gates i, o, f, c."""

    def cell(c: OpContext, d: Direction) -> Cell:
        scratch = [columns_of(c, d, c.shape(d.r)[0])]

        def product(t: StepWriter, b: Buffers) -> None:
            t.product(b.states[0], b.panels[0], b.scratch[0])

        return lstm_cell(c, d, Cell([panels_of(c, d.r)], [], scratch, product))

    return recur(c, Layer.of(x, w, r, optional, states=2), ["Sigmoid", "Tanh", "Tanh"], cell)


def lstm_cell(c: OpContext, d: Direction, product: Cell) -> Cell:
    """Returns the cell of an LSTM, whose ``product`` writes the state by the weights to the first of its scratch."""
    f, g, h = d.activations
    forget = bool(c.attribute("input_forget", 0))
    peepholes = [] if d.peepholes is None else [d.peepholes]

    def body(s: ScalarBuilder, *v: Value) -> Sequence[Value]:
        gate, peep, old = [v[i] + v[4 + i] for i in range(4)], v[8:-2], v[-1]
        if peep:  # i, o, f
            gate[0], gate[2] = gate[0] + peep[0] * old, gate[2] + peep[2] * old
        i = f(s, gate[0])
        keep = 1.0 - i if forget else f(s, gate[2])
        new = keep * old + i * g(s, gate[3])
        out = gate[1] + peep[1] * new if peep else gate[1]
        return [f(s, out) * h(s, new), new]

    def write(t: StepWriter, b: Buffers) -> None:
        product.write(t, b)
        ins = [*t.gates(b.inputs, range(4)), *t.gates(b.scratch[0], range(4))]
        ins += [read for p in b.vectors[: len(peepholes)] for read in t.gates(p, range(3))]
        t.end(ins, b.y, b.states, b.valid, body)

    return Cell(product.panels, [*peepholes, *product.vectors], product.scratch, write)


@_rules(3, activations=2, attributes={"linear_before_reset": one_of(0, 1)})
@kernel("", "GRU")
@accuracy(STEP)
def gru(c: OpContext, x: Operand, w: Operand, r: Operand, *optional: Operand | None) -> Sequence[Operand]:
    """Computes a GRU with gates z, r, h; ``linear_before_reset`` multiplies the reset gate after the product."""
    linear = bool(c.attribute("linear_before_reset", 0))
    cell, separate = (_linear_gru, [2]) if linear else (_gru, [])
    return recur(c, Layer.of(x, w, r, optional), ["Sigmoid", "Tanh"], cell, separate)


def _linear_gru(c: OpContext, d: Direction) -> Cell:
    """Returns a GRU whose reset gate multiplies the product, and its bias."""
    f, g = d.activations

    def body(s: ScalarBuilder, *v: Value) -> Sequence[Value]:
        bias, old = v[6:-1], v[-1]
        z, reset = f(s, v[0] + v[3]), f(s, v[1] + v[4])
        n = g(s, v[2] + reset * (v[5] + bias[0] if bias else v[5]))
        return [(1.0 - z) * n + z * old]

    def write(t: StepWriter, b: Buffers) -> None:
        (rh,) = b.scratch
        t.product(b.states[0], b.panels[0], rh)
        ins = [*t.gates(b.inputs, range(3)), *t.gates(rh, range(3))]
        ins += [read for bias in b.vectors for read in t.gates(bias, [2])]
        t.end(ins, b.y, b.states, b.valid, body)

    return Cell([panels_of(c, d.r)], [] if d.bias is None else [d.bias], [columns_of(c, d, c.shape(d.r)[0])], write)


def _gru(c: OpContext, d: Direction) -> Cell:
    """Returns a GRU whose reset gate multiplies the state before the product."""
    f, g = d.activations
    hidden = c.shape(d.r)[1]
    upper = part(c, d.r, [0, 0], [1, 1], [2 * hidden, hidden])
    lower = part(c, d.r, [2 * hidden, 0], [1, 1], [hidden, hidden])

    def gates(s: ScalarBuilder, *v: Value) -> Sequence[Value]:
        return [f(s, v[0] + v[2]), f(s, v[1] + v[3]) * v[4]]

    def body(s: ScalarBuilder, wx: Value, rh: Value, z: Value, old: Value) -> Sequence[Value]:
        return [(1.0 - z) * g(s, wx + rh) + z * old]

    def write(t: StepWriter, b: Buffers) -> None:
        rh, z, reset, candidate = b.scratch
        state, here = b.states[0], lambda t, n, h: [n, h]
        t.product(state, b.panels[0], rh)
        ins = [*t.gates(b.inputs, range(2)), *t.gates(rh, range(2)), (state, lambda t, n, h: [0, n, h])]
        t.stage(ins, [(z, here), (reset, here)], gates)
        t.product(reset, b.panels[1], candidate)
        ins = [*t.gates(b.inputs, [2]), *t.gates(candidate, [0]), (z, here)]
        t.end(ins, b.y, b.states, b.valid, body)

    scratch = [columns_of(c, d, columns) for columns in (2 * hidden, hidden, hidden, hidden)]
    return Cell([panels_of(c, upper), panels_of(c, lower)], [], scratch, write)
