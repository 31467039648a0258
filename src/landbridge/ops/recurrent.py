"""RNN, GRU and LSTM: their rules, and what their gates do in one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ops.accuracy import Accuracy, accuracy
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.legal import Condition, Legal, at_least, holds, one_of
from landbridge.ops.matmul import matrix_product
from landbridge.ops.recurrent_steps import Direction, Layer, gate_values, matrix_shape, recur, summed_bias
from landbridge.ops.registry import Handler, operator
from landbridge.ops.rules import rules
from landbridge.ops.slicing import part


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


@_rules(1, activations=1)
@operator("RNN")
@accuracy(STEP)
def rnn(c: OpContext, x: Operand, w: Operand, r: Operand, *optional: Operand | None) -> Sequence[Operand]:
    """``h = f(W x + R h + b)``."""

    def step(c: OpContext, d: Direction, wx: Operand, states: list[Operand]) -> list[Operand]:
        (f,), both = d.activations, summed_bias(c, d)
        rh = matrix_product(c, states[0], d.r, trans_b=True)
        operands = [wx, rh] if both is None else [wx, rh, both]
        return [c.elementwise("rnn", operands, lambda s, a, b, t=None: f(s, a + b if t is None else a + b + t))]

    return recur(c, Layer.of(x, w, r, optional), ["Tanh"], step)


@_rules(4, activations=3, cell=True, attributes={"input_forget": one_of(0, 1)})
@operator("LSTM")
@accuracy(STEP)
def lstm(c: OpContext, x: Operand, w: Operand, r: Operand, *optional: Operand | None) -> Sequence[Operand]:
    """Gates i, o, f, c."""
    forget = bool(c.attribute("input_forget", 0))

    def step(c: OpContext, d: Direction, wx: Operand, states: list[Operand]) -> list[Operand]:
        f, g, h = d.activations
        both = summed_bias(c, d)
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

        return list(gate_values(c, "lstm", inputs, matrix_shape(c, states[0]), 2, body))

    return recur(c, Layer.of(x, w, r, optional, states=2), ["Sigmoid", "Tanh", "Tanh"], step)


@_rules(3, activations=2, attributes={"linear_before_reset": one_of(0, 1)})
@operator("GRU")
@accuracy(STEP)
def gru(c: OpContext, x: Operand, w: Operand, r: Operand, *optional: Operand | None) -> Sequence[Operand]:
    """Gates z, r, h; ``linear_before_reset`` multiplies the reset gate after the product."""
    linear = bool(c.attribute("linear_before_reset", 0))

    def step(c: OpContext, d: Direction, wx: Operand, states: list[Operand]) -> list[Operand]:
        f, g = d.activations
        old, hidden = states[0], c.shape(states[0])[1]
        size = matrix_shape(c, old)
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
            return list(gate_values(c, "gru", inputs, size, 1, whole))
        upper = part(c, d.r, [0, 0], [1, 1], [2 * hidden, hidden])
        lower = part(c, d.r, [2 * hidden, 0], [1, 1], [hidden, hidden])
        rh = matrix_product(c, old, upper, trans_b=True)

        def first(s: ScalarBuilder, *v: Value) -> Sequence[Value]:
            wb, rb = gates(v[6:])
            z = f(s, plus(plus(v[0] + v[3], wb, 0), rb, 0))
            reset = f(s, plus(plus(v[1] + v[4], wb, 1), rb, 1))
            return [z, reset * v[5]]

        z, reset = gate_values(c, "gru_gates", [(wx, range(3)), (rh, range(2)), (old, [0]), *biases], size, 2, first)
        candidate = matrix_product(c, reset, lower, trans_b=True)

        def second(s: ScalarBuilder, *v: Value) -> Sequence[Value]:
            wb, rb = gates(v[6:])
            n = g(s, plus(plus(v[2] + v[3], wb, 2), rb, 2))
            return [(1.0 - v[4]) * n + v[4] * v[5]]

        inputs = [(wx, range(3)), (candidate, [0]), (z, [0]), (old, [0]), *biases]
        return list(gate_values(c, "gru", inputs, size, 1, second))

    return recur(c, Layer.of(x, w, r, optional), ["Sigmoid", "Tanh"], step)
