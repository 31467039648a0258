"""Results of operators in float64, from their definitions, each with the condition that its bound is relative to."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from tests.ops.one_node import Array

Results = list[tuple[Array, Array]]


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _gates(x: Array, w: Array, state: Array, r: Array, b: Array, gates: int) -> tuple[list[Array], Array]:
    """``x w' + h r' + b`` of each gate, and 1 + the sum of all gates' magnitudes."""
    first, second = np.split(b, 2)
    total = np.split(x @ w.T + state @ r.T + first + second, gates, 1)
    terms = np.abs(x) @ np.abs(w).T + np.abs(state) @ np.abs(r).T + np.abs(first) + np.abs(second)
    return total, 1 + sum(np.split(terms, gates, 1))


def rnn(x: Array, w: Array, r: Array, b: Array, _: None, h: Array) -> Results:
    (gate,), condition = _gates(x[0], w[0], h[0], r[0], b[0], 1)
    y = np.tanh(gate)
    return [(y[None, None], condition), (y[None], condition)]


def gru(linear: int) -> Callable[..., Results]:
    def truth(x: Array, w: Array, r: Array, b: Array, _: None, h: Array) -> Results:
        old, (wb, rb) = h[0], np.split(b[0], 2)
        (z, reset, _), condition = _gates(x[0], w[0], old, r[0], b[0], 3)
        z, reset = sigmoid(z), sigmoid(reset)
        wx, last, bias = (np.split(v, 3, -1)[2] for v in (x[0] @ w[0].T, old @ r[0].T + rb, wb))
        inner = reset * last if linear else (reset * old) @ np.split(r[0], 3)[2].T + np.split(rb, 3)[2]
        y = (1 - z) * np.tanh(wx + bias + inner) + z * old
        # what z and the reset gate are off by is multiplied with the state
        condition = condition * (1 + np.abs(old).max() * (1 + np.abs(r[0]).sum(1).max() * (1 - linear)))
        return [(y[None, None], condition), (y[None], condition)]

    return truth


def lstm(x: Array, w: Array, r: Array, b: Array, _: None, h: Array, cell: Array, p: Array | None = None) -> Results:
    old = cell[0]
    (i, o, f, c), condition = _gates(x[0], w[0], h[0], r[0], b[0], 4)
    pi, po, pf = np.zeros((3, old.shape[1])) if p is None else np.split(p[0], 3)
    new = sigmoid(f + pf * old) * old + sigmoid(i + pi * old) * np.tanh(c)
    y = sigmoid(o + po * new) * np.tanh(new)
    condition = (condition + np.abs(pi * old) + np.abs(pf * old) + np.abs(po * new)) * (1 + np.abs(old))
    condition = condition * (1 + np.abs(po))
    return [(y[None, None], condition), (y[None], condition), (new[None], condition)]


def _cubic(t: float, a: float = -0.75) -> list[float]:
    def weight(d: float) -> float:
        return ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else (((d - 5) * d + 8) * d - 4) * a

    return [weight(abs(t - k)) for k in (-1, 0, 1, 2)]


def _weights(place: float, mode: str) -> list[tuple[int, float]]:
    base = int(np.floor(place))
    if mode == "nearest":
        return [(int(np.rint(place)), 1.0)]
    if mode == "linear":
        return [(base, 1 - (place - base)), (base + 1, place - base)]
    return list(zip(range(base - 1, base + 3), _cubic(place - base), strict=True))


def _reflect(v: float, low: float, high: float) -> float:
    while not low <= v <= high:
        v = 2 * low - v if v < low else 2 * high - v
    return v


def grid_sample(mode: str, padding: str, align: int) -> Callable[..., Results]:
    def truth(x: Array, grid: Array) -> Results:
        n, channels, *extents = x.shape
        result = np.zeros((n, channels, *grid.shape[1:3]))
        condition = np.zeros_like(result)
        for b, i, j in np.ndindex(*grid.shape[:3]):
            axes, ends = [], []
            for v, e in zip(grid[b, i, j, ::-1], extents, strict=True):
                low, high = (0.0, e - 1.0) if align else (-0.5, e - 0.5)
                place = (float(v) + 1) / 2 * (high - low) + low
                if padding == "border" and mode != "cubic":  # as torch, where taps alone are kept inside
                    place = min(max(place, 0.0), e - 1.0)
                elif padding == "reflection":
                    place = _reflect(place, low, high)
                axes.append(_weights(place, mode))
                ends.append((low, high))
            for taps in product(*axes):
                at, weight = [k for k, _ in taps], float(np.prod([w for _, w in taps]))
                if padding == "reflection":
                    at = [round(_reflect(k, *end)) for k, end in zip(at, ends, strict=True)]
                if padding != "zeros":
                    at = [min(max(k, 0), e - 1) for k, e in zip(at, extents, strict=True)]
                if all(0 <= k < e for k, e in zip(at, extents, strict=True)):
                    value = x[b, :, at[0], at[1]]
                    result[b, :, i, j] += weight * value
                    condition[b, :, i, j] += max(extents) * np.abs(value)
        return [(result, condition)]

    return truth


def _matrix(old: int, new: int, mode: str, coordinates: str, antialias: int) -> Array:
    """The weight of each old element in each new one."""
    scale, table = new / old, np.zeros((new, old))
    for i in range(new):
        place = {
            "half_pixel": (i + 0.5) / scale - 0.5,
            "pytorch_half_pixel": (i + 0.5) / scale - 0.5 if new > 1 else 0.0,
            "asymmetric": i / scale,
            "align_corners": i * (old - 1) / (new - 1) if new > 1 else 0.0,
        }[coordinates]
        if antialias and scale < 1:
            reach = (1 if mode == "linear" else 2) / scale
            at = np.arange(np.floor(place - reach), np.ceil(place + reach) + 1)
            distance = np.abs(at - place) * scale
            near, far = np.maximum(1 - distance, 0), ((-0.75 * distance + 3.75) * distance - 6) * distance + 3
            cubic = np.where(distance <= 1, (1.25 * distance - 2.25) * distance**2 + 1, np.where(distance < 2, far, 0))
            weights = near if mode == "linear" else cubic
            taps = list(zip(at.astype(int).tolist(), (weights / weights.sum()).tolist(), strict=True))
        else:
            taps = _weights(place, mode)
        for k, weight in taps:
            table[i, min(max(k, 0), old - 1)] += weight
    return table


def resize(sizes: tuple[int, int], mode: str, coordinates: str, antialias: int) -> Callable[..., Results]:
    """Of the last two axes."""

    def truth(x: Array, *_: Array) -> Results:
        tables = [_matrix(e, new, mode, coordinates, antialias) for e, new in zip(x.shape[2:], sizes, strict=True)]
        both = [np.einsum("nchw,ih,jw->ncij", v, *t) for v, t in ((x, tables), (np.abs(x), map(np.abs, tables)))]
        return [(both[0], both[1])]

    return truth


def _same(y: Array) -> Results:
    return [(y, np.abs(y))]


def lrn(size: int, alpha: float, beta: float, bias: float) -> Callable[..., Results]:
    def truth(x: Array) -> Results:
        before = (size - 1) // 2
        squares = np.pad(x * x, ((0, 0), (before, size - 1 - before), (0, 0), (0, 0)))
        total = np.lib.stride_tricks.sliding_window_view(squares, size, 1).sum(-1)
        return _same(x / (bias + float(np.float32(alpha)) / size * total) ** beta)

    return truth


def lp_pool(p: int) -> Callable[..., Results]:
    def truth(x: Array) -> Results:
        powers = np.lib.stride_tricks.sliding_window_view(np.abs(x) ** p, (3, 2), (2, 3)).sum((4, 5))
        return _same(powers ** (1 / p))

    return truth


def lp_normalization(p: int) -> Callable[..., Results]:
    def truth(x: Array) -> Results:
        norm = (np.abs(x) ** p).sum(1, keepdims=True) ** (1 / p)
        return _same(x / np.where(norm == 0, 1, norm))

    return truth


def _angles(bins: int, points: int, count: int) -> Array:
    return 2 * np.pi * (np.arange(bins)[:, None] * np.arange(count)[None] % points) / points


def _transformed(x: Array, points: int, bins: int, sign: int) -> tuple[Array, Array]:
    """Real and imaginary parts [..., bins, 2] of [..., points, 1 or 2], and the sums of the points' magnitudes: a fast
    transform adds both parts of all points before a sine that is 0 takes them out again."""
    angle = _angles(bins, points, x.shape[-2])
    cos, sin = np.cos(angle), sign * np.sin(angle)
    table = np.array([[cos, -sin], [sin, cos]])[:, : x.shape[-1]]
    total = np.linalg.norm(x, axis=-1).sum(-1)[..., None, None]
    return np.einsum("...ni,oikn->...ko", x, table), np.broadcast_to(total, (*x.shape[:-2], bins, 2))


def dft(points: int, inverse: bool = False, bins: int | None = None) -> Callable[..., Results]:
    """Along axis 1."""

    def truth(x: Array, *_: Array) -> Results:
        y, condition = _transformed(x[:, :points], points, bins or points, 1 if inverse else -1)
        return [(y / points, condition / points)] if inverse else [(y, condition)]

    return truth


def stft(x: Array, step: Array, window: Array) -> Results:
    points, hop = window.size, int(step)
    frames = np.lib.stride_tricks.sliding_window_view(x[..., 0], points, 1)[:, ::hop] * window
    return [_transformed(frames[..., None], points, points // 2 + 1, -1)]


def scatter(reduction: str, nd: bool) -> Callable[..., Results]:
    def truth(x: Array, indices: Array, updates: Array) -> Results:
        apply = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction]
        places = (indices[:, 0],) if nd else (indices, np.arange(x.shape[1])[None])
        want, terms = x.copy(), np.abs(x)
        apply.at(want, places, updates)
        apply.at(terms, places, np.abs(updates))
        return [(want, terms if reduction in ("add", "mul") else np.zeros_like(want))]

    return truth
