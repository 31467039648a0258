"""``com.microsoft.DynamicQuantizeLSTM``: weights of 8 bits; the operands they are multiplied with are quantized at run
time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from landbridge.errors import UnsupportedOperatorError
from landbridge.operators import Array, Draw, HostValue, Results, host_operator


def _results(x: HostValue, w: HostValue, *_: Any, hidden_size: int, direction: str = "forward", **__: Any) -> Results:
    directions = 2 if direction == "bidirectional" else 1
    steps, batch = x.shape[:2]
    state = (directions, batch, hidden_size)
    return [((steps, directions, batch, hidden_size), x.dtype), (state, x.dtype), (state, x.dtype)]


def _quantized(x: Array) -> tuple[Array, np.float32]:
    """Returns ``x`` in 255 steps from its minimum to its maximum, without its zero point, and the step."""
    low, high = min(np.float32(0), x.min(initial=0)), max(np.float32(0), x.max(initial=0))
    step = np.float32((high - low) / np.float32(255)) or np.float32(1)
    zero = np.clip(np.rint(-low / step), 0, 255)
    return np.clip(np.rint(x / step) + zero, 0, 255) - zero, step


def _product(x: Array, weights: Array, scale: Array) -> Array:
    """Returns ``x`` times weights whose zero points were subtracted, exactly, in f32."""
    whole, step = _quantized(x)
    return ((whole.astype(np.float64) @ weights).astype(np.float32)) * (step * scale).astype(np.float32)


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)), np.float32)


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
}


@host_operator("com.microsoft", "DynamicQuantizeLSTM", results=_results, in_order=True)
def dynamic_quantize_lstm(
    *,
    hidden_size: int,
    direction: str = "forward",
    activations: Sequence[str] = (),
    clip: float = 0.0,
    input_forget: int = 0,
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
) -> Draw:
    """Returns an LSTM; the inputs of all steps are quantized together, the state separately before each step."""
    directions = 2 if direction == "bidirectional" else 1
    names = [name.lower() for name in activations] or ["sigmoid", "tanh", "tanh"] * directions
    if any(name not in _ACTIVATIONS for name in names) or input_forget:
        raise UnsupportedOperatorError(
            f"activations {names}, input_forget {input_forget}; legal: Sigmoid, Tanh, Relu, and 0"
        )

    def limited(x: Array) -> Array:
        return np.clip(x, -clip, clip) if clip else x

    def one(
        x: Array, w: Array, r: Array, scales: tuple[Array, Array], bias: Array, peepholes: Array,
        lengths: Array, h: Array, cell: Array, functions: Sequence[Callable[[Array], Array]],
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        steps, batch, _ = x.shape
        gates = _product(x.reshape(steps * batch, -1), w, scales[0]).reshape(steps, batch, -1) + bias
        created = np.zeros((steps, batch, hidden_size), np.float32)
        p_in, p_out, p_forget = np.split(peepholes, 3)
        f, g, last = functions
        for step in range(steps):
            i, o, forget, c = np.split(gates[step] + _product(h, r, scales[1]), 4, 1)
            i, forget = f(limited(i + p_in * cell)), f(limited(forget + p_forget * cell))
            now = forget * cell + i * g(limited(c))
            out = f(limited(o + p_out * now)) * last(now)
            alive = (step < lengths)[:, None]
            h, cell = np.where(alive, out, h), np.where(alive, now, cell)
            created[step] = np.where(alive, out, 0)
        return created, h, cell

    def run(
        x: Array, w: Array, r: Array, b: Array | None, lengths: Array | None, h: Array | None, c: Array | None,
        p: Array | None, w_scale: Array, w_zero: Array, r_scale: Array, r_zero: Array,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        steps, batch, _ = x.shape
        ends = np.full(batch, steps) if lengths is None else lengths
        zeros = np.zeros((directions, batch, hidden_size), np.float32)
        results = []
        for d in range(directions):
            weights = []
            for values, zero in ((w, w_zero), (r, r_zero)):
                weights.append(values[d].astype(np.float64) - np.reshape(zero, (directions, -1))[d])
            scales = tuple(np.reshape(s, (directions, -1))[d] for s in (w_scale, r_scale))
            bias = np.zeros(4 * hidden_size, np.float32) if b is None else b[d].reshape(2, -1).sum(0)
            back = direction == "reverse" or d == 1
            order = np.tile(np.arange(steps)[:, None], batch)
            if back:
                order = np.where(order < ends, ends - 1 - order, order)
            ordered = np.take_along_axis(x, order[:, :, None], 0)
            y, last_h, last_c = one(
                ordered, weights[0], weights[1], (scales[0], scales[1]), bias,
                np.zeros(3 * hidden_size, np.float32) if p is None else p[d], ends,
                (zeros if h is None else h)[d], (zeros if c is None else c)[d],
                [_ACTIVATIONS[name] for name in names[3 * d : 3 * d + 3]],
            )  # fmt: skip
            results.append((np.take_along_axis(y, order[:, :, None], 0) if back else y, last_h, last_c))
        ys, hs, cs = zip(*results, strict=True)
        return np.stack(ys, 1), np.stack(hs), np.stack(cs)

    return run
