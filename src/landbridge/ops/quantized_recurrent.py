"""DynamicQuantizeLSTM of onnxruntime: weights of 8 bits, with inputs and states that each step quantizes.

An operand is quantized over all its elements, by ``scale = (max - min) / 255`` and a zero point, with 0 in the range:
the inputs of all steps at once, the state of all rows in every step. Products are of integers, and exact: of
words of four bytes, where weights without their zero points fit those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from landbridge.ir.prim_builder import Access, PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import shape_of
from landbridge.operators import kernel
from landbridge.ops.accuracy import Accuracy, accuracy
from landbridge.ops.byte_products import WORD, byte_matmul, weight_words
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.legal import Condition, at_least, holds, one_of
from landbridge.ops.matrix_product import matrix_product
from landbridge.ops.recurrent import columns_of, lstm_cell
from landbridge.ops.recurrent_steps import Buffers, Cell, Direction, Layer, StepWriter, panels_of, recur
from landbridge.ops.rules import rules
from landbridge.sizes.size import Extent

Array: TypeAlias = np.ndarray[Any, Any]


@rules(
    "X: _ _ I",
    "W: D I GH",
    "R: D H GH",
    "B?: D _",
    "sequence_lens?: N",
    "initial_h?: _ _ H",
    "initial_c?: _ _ H",
    "P?: D _",
    "W_scale: D *_",
    "W_zero_point: D *_",
    "R_scale: D *_",
    "R_zero_point: D *_",
    attributes={
        "direction": one_of("forward", "reverse", "bidirectional", default="forward"),
        "hidden_size": at_least(1),
        "activations": holds("len(it) == 3 * D", "3 for each direction"),
        "clip": holds("it >= 0", "0 or more"),
        "input_forget": one_of(0, 1, default=0),
    },
    where=(
        Condition("D == (2 if direction == 'bidirectional' else 1)", "W is for the one direction, or for both"),
        Condition("H > 0 and GH == 4 * H", "W and R have 4 * H columns, of H above 0"),
        "hidden_size == H",
        "B[1] == 2 * GH",
        "P[1] == 3 * H",
        Condition("N == X[1]", "sequence_lens has a length for each of the batch of X"),
        Condition("initial_h[:2] == (D, X[1])", "initial_h has the directions D and the batch of X"),
        Condition("initial_c[:2] == (D, X[1])", "initial_c has the directions D and the batch of X"),
    ),
)
@kernel("com.microsoft", "DynamicQuantizeLSTM")
@accuracy(Accuracy(400, sums=True, note="of a step; a rounding of a state may go to the neighbour"))
def dynamic_quantize_lstm(
    c: OpContext, x: Operand, w: Operand, r: Operand, *optional: Operand | None
) -> Sequence[Operand]:
    """Computes an LSTM whose products are of integers."""
    given = [*optional[:5], *[None] * (5 - len(optional[:5]))]
    w_scale, w_zero, r_scale, r_zero = (c.constant(v, "scale or zero point of weights") for v in optional[5:9])
    inputs, states = _centered(c, w, w_zero), _centered(c, r, r_zero)
    layer = Layer(x, inputs, np.ascontiguousarray(states.transpose(0, 2, 1)), given[0], given[1], given[2:4], given[4])

    def product(c: OpContext, flat: Operand, number: int) -> Operand:
        weights = inputs[number]
        scales = _columns(w_scale[number], weights.shape[1])
        if weights.dtype == np.int8:
            quantized, low, high = _quantized(c, flat, "uint8", _steps)
            zero = c.reshape(c.elementwise("zero_point", [low, high], _zero_point, "uint8"), ())
            total = byte_matmul(c, quantized, zero, weights)
        else:
            quantized, low, high = _quantized(c, flat, "int32", _quantize)
            total = matrix_product(c, quantized, weights.astype(np.int32))
        return c.elementwise("rescale", [total, low, high, scales], _rescaled, "float32")

    def cell(c: OpContext, d: Direction) -> Cell:
        number = int(d.back and r_scale.shape[0] > 1)
        weights, scales = np.ascontiguousarray(states[number].T), _columns(r_scale[number], c.shape(d.r)[0])
        in_words = weights.dtype == np.int8 and c.shape(d.r)[1] % WORD == 0
        return lstm_cell(c, d, (_of_words if in_words else _of_values)(c, d, weights, scales))

    return recur(c, layer, ["Sigmoid", "Tanh", "Tanh"], cell, product=product)


def _of_values(c: OpContext, d: Direction, weights: Array, scales: Array) -> Cell:
    """Returns the cell that multiplies the state by ``weights`` [columns, H] element by element."""
    rows, hidden = c.shape(d.r)
    scratch = [*_scratch(c, d), ((c.shape(d.inputs)[1], hidden), "int32")]

    def write(t: StepWriter, b: Buffers) -> None:
        result, total, low, high, quantized = b.scratch
        ends = _ends(t, b, low, high)
        t.each(hidden, [(b.states[0], lambda t, n, h: [0, n, h]), *ends], quantized, _quantize)
        t.product(quantized, b.panels[0], total)
        columns = [(b.vectors[-1], lambda t, n, h: [h])]
        t.each(rows, [(total, lambda t, n, h: [n, h]), *ends, *columns], result, _rescaled)

    return Cell([panels_of(c, weights)], [scales], scratch, write)


def _of_words(c: OpContext, d: Direction, weights: Array, scales: Array) -> Cell:
    """Returns the cell that multiplies the state by the bytes ``weights`` [columns, H] in words of four."""
    rows, hidden = c.shape(d.r)
    scratch = [*_scratch(c, d), ((c.shape(d.inputs)[1], hidden // WORD), "int32")]

    def word(s: ScalarBuilder, *v: Value) -> Value:
        found = s.const(0, "int32")
        for number, each in enumerate(v[:WORD]):
            found = found | s.binary("shl", s.cast(_steps(s, each, *v[WORD:]), "int32"), 8 * number)
        return found

    def rescaled(s: ScalarBuilder, total: Value, low: Value, high: Value, scale: Value, ones: Value) -> Value:
        return _rescaled(s, total - s.cast(_zero_point(s, low, high), "int32") * ones, low, high, scale)

    def byte(number: int) -> Callable[..., list[Any]]:
        return lambda t, n, h: [0, n, h * WORD + number]

    def write(t: StepWriter, b: Buffers) -> None:
        result, total, low, high, words = b.scratch
        ends = _ends(t, b, low, high)
        t.each(hidden // WORD, [*((b.states[0], byte(number)) for number in range(WORD)), *ends], words, word)
        t.product(words, b.panels[0], total, lambda s, total, x, w: total + s.byte_dot(x, w))
        columns = [(vector, lambda t, n, h: [h]) for vector in b.vectors[-2:]]
        t.each(rows, [(total, lambda t, n, h: [n, h]), *ends, *columns], result, rescaled)

    sums = weights.sum(1, dtype=np.int32)
    return Cell([panels_of(c, weight_words(weights, 1))], [scales, sums], scratch, write)


def _scratch(c: OpContext, d: Direction) -> list[tuple[Sequence[Extent], str]]:
    """Returns the scratch of a step: the product, its sums of integers, and the range of the state."""
    shape = columns_of(c, d, c.shape(d.r)[0])[0]
    return [(shape, "float32"), (shape, "int32"), ((1, 1), "float32"), ((1, 1), "float32")]


def _ends(t: StepWriter, b: Buffers, low: SSAValue, high: SSAValue) -> list[Access]:
    """Returns reads of the ends of the range of the state, which it finds."""
    t.over_all(b.states[0], low, lambda s, least, v: s.minimum(least, v))
    t.over_all(b.states[0], high, lambda s, most, v: s.maximum(most, v))
    return [(low, lambda t, n, h: [0, 0]), (high, lambda t, n, h: [0, 0])]


def _centered(c: OpContext, weights: Operand, zero: Array) -> Array:
    """Returns weights without their zero points, as bytes where they fit."""
    known = c.constant(weights, "weights")
    if not zero.any() and known.dtype == np.int8:
        return known
    wide = known.astype(np.int16) - zero.astype(np.int16).reshape(zero.shape[0], 1, -1)
    return wide.astype(np.int8) if wide.min(initial=0) >= -128 and wide.max(initial=0) <= 127 else wide


def _columns(scales: np.ndarray[Any, Any], columns: int) -> np.ndarray[Any, Any]:
    """Returns one for each column, of one for all or for each."""
    return np.ascontiguousarray(np.broadcast_to(scales.astype(np.float32), (columns,)))


def _scale(s: ScalarBuilder, low: Value, high: Value) -> Value:
    scale = (high - low) / 255.0
    return s.select(high > low, scale, 1.0)


def _zero_point(s: ScalarBuilder, low: Value, high: Value) -> Value:
    """Returns the step that 0 is."""
    zero = s.math("round_even", s.minimum(s.maximum(0.0 - low / _scale(s, low, high), 0.0), 255.0))
    return s.cast(zero, "uint8")


def _steps(s: ScalarBuilder, v: Value, low: Value, high: Value) -> Value:
    """Computes ``v`` in steps of the scale, from ``low`` on."""
    return s.cast(_steps_and_zero(s, v, low, high)[0], "uint8")


def _quantize(s: ScalarBuilder, v: Value, low: Value, high: Value) -> Value:
    """Computes ``v`` in steps of the scale, from the zero point on, as an int32."""
    steps, zero = _steps_and_zero(s, v, low, high)
    return s.cast(steps - zero, "int32")


def _steps_and_zero(s: ScalarBuilder, v: Value, low: Value, high: Value) -> tuple[Value, Value]:
    scale = _scale(s, low, high)
    zero = s.math("round_even", s.minimum(s.maximum(0.0 - low / scale, 0.0), 255.0))
    return s.minimum(s.maximum(s.math("round_even", v / scale) + zero, 0.0), 255.0), zero


def _rescaled(s: ScalarBuilder, total: Value, low: Value, high: Value, scale: Value) -> Value:
    return s.cast(total, "float32") * (_scale(s, low, high) * scale)


def _quantized(c: OpContext, x: Operand, dtype: str, body: Callable[..., Value]) -> list[Operand]:
    """Returns a matrix in steps of its scale, as ``body`` has them, and the ends of its range, 0 among them."""
    shape = c.shape(x)

    def build(p: PrimBuilder) -> None:
        quantized, low, high = p.outputs
        source = (p.inputs[0], lambda one, m, k: [m, k])
        ends = [(b, lambda one, m, k: [0, 0]) for b in (low, high)]
        loops = (1, *shape_of(p.inputs[0].type))
        p.generic("prr", loops, [source], ends[:1], lambda s, least, v: s.minimum(least, v), init=0)
        p.generic("prr", loops, [source], ends[1:], lambda s, most, v: s.maximum(most, v), init=0)
        p.generic("ppp", loops, [source, *ends], [(quantized, lambda one, m, k: [m, k])], body)

    outputs = [(shape, dtype), ((1, 1), "float32"), ((1, 1), "float32")]
    return list(c.g.call("quantize_inputs", [c.value(x)], outputs, build))
