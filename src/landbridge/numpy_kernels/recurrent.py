"""Recurrent layers with the default activations: a product for all steps of the inputs, then one for each step."""

from __future__ import annotations

import numpy as np

from landbridge.array_type import Array
from landbridge.numpy_kernels.registry import kernel


@kernel("LSTM", multiplies=True)
def lstm(
    x: Array,
    weight: Array,
    recurrent: Array,
    bias: Array | None,
    hidden: Array | None,
    cell: Array | None,
    steps: Array,
    last_hidden: Array,
    last_cell: Array,
    *,
    direction: str,
) -> None:
    """Runs ``x`` (T, N, I) through each direction: ``steps`` (T, D, N, H) and the last states (D, N, H).

    Gates are in the order input, output, forget, cell.
    """
    size = recurrent.shape[-1]
    for d, reverse in enumerate(_reversed(direction)):
        gates = _of_inputs(x, weight[d], None if bias is None else bias[d].reshape(2, -1).sum(0))
        h, c = _initial(hidden, d, last_hidden), _initial(cell, d, last_cell)
        for t in _times(len(x), reverse):
            gate = gates[t] + h @ recurrent[d].T
            i, o, f = (_sigmoid(gate[:, n * size : (n + 1) * size]) for n in range(3))
            c = f * c + i * np.tanh(gate[:, 3 * size :])
            h = o * np.tanh(c)
            steps[t, d] = h
        last_hidden[d], last_cell[d] = h, c


@kernel("GRU", multiplies=True)
def gru(
    x: Array,
    weight: Array,
    recurrent: Array,
    bias: Array | None,
    hidden: Array | None,
    steps: Array,
    last_hidden: Array,
    *,
    direction: str,
    linear_before_reset: int,
) -> None:
    """Runs ``x`` (T, N, I) through each direction; gates are in the order update, reset, hidden."""
    size = recurrent.shape[-1]
    for d, reverse in enumerate(_reversed(direction)):
        both = np.zeros((2, 3 * size), x.dtype) if bias is None else bias[d].reshape(2, -1)
        gates = _of_inputs(x, weight[d], both[0])
        gates[..., : 2 * size] += both[1, : 2 * size]
        own, own_bias = recurrent[d, 2 * size :], both[1, 2 * size :]
        h = _initial(hidden, d, last_hidden)
        for t in _times(len(x), reverse):
            z, r = np.split(_sigmoid(gates[t, :, : 2 * size] + h @ recurrent[d, : 2 * size].T), 2, 1)
            added = r * (h @ own.T + own_bias) if linear_before_reset else (r * h) @ own.T + own_bias
            h = (1 - z) * np.tanh(gates[t, :, 2 * size :] + added) + z * h
            steps[t, d] = h
        last_hidden[d] = h


@kernel("RNN", multiplies=True)
def rnn(
    x: Array,
    weight: Array,
    recurrent: Array,
    bias: Array | None,
    hidden: Array | None,
    steps: Array,
    last_hidden: Array,
    *,
    direction: str,
) -> None:
    """Runs ``x`` (T, N, I) through each direction, with hyperbolic tangents."""
    for d, reverse in enumerate(_reversed(direction)):
        gates = _of_inputs(x, weight[d], None if bias is None else bias[d].reshape(2, -1).sum(0))
        h = _initial(hidden, d, last_hidden)
        for t in _times(len(x), reverse):
            h = np.tanh(gates[t] + h @ recurrent[d].T)
            steps[t, d] = h
        last_hidden[d] = h


def _reversed(direction: str) -> list[bool]:
    """Returns for each direction whether it begins at the last step."""
    return {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]


def _times(count: int, reverse: bool) -> range:
    return range(count)[::-1] if reverse else range(count)


def _initial(state: Array | None, direction: int, last: Array) -> Array:
    return np.zeros(last.shape[1:], last.dtype) if state is None else state[direction]


def _of_inputs(x: Array, weight: Array, bias: Array | None) -> Array:
    """Returns the part of the gates (T, N, gates) that the inputs decide."""
    created: Array = np.matmul(x.reshape(-1, x.shape[-1]), weight.T).reshape(*x.shape[:2], -1)
    if bias is not None:
        created += bias
    return created


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))
