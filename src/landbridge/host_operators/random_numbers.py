"""Random numbers: each call site of a Session has its own generator; equal seeds give equal numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.operators import Array, Draw, HostValue, Results, host_operator


def _generator(seed: float | None) -> np.random.Generator:
    return np.random.default_rng(None if seed is None else int(np.float32(seed).view(np.uint32)))


def _shape_results(*, shape: Sequence[int], dtype: str = "float32", **_: float) -> Results:
    return [(shape, dtype)]


def _like_results(x: HostValue, *, dtype: str | None = None, **_: float) -> Results:
    return [(x.shape, dtype or x.dtype)]


def _uniform(seed: float | None, low: float, high: float) -> Callable[[Sequence[int], str], Array]:
    generator = _generator(seed)
    return lambda shape, dtype: generator.uniform(low, high, shape).astype(numpy_dtype(dtype))


def _normal(seed: float | None, mean: float, scale: float) -> Callable[[Sequence[int], str], Array]:
    generator = _generator(seed)
    return lambda shape, dtype: generator.normal(mean, scale, shape).astype(numpy_dtype(dtype))


@host_operator("", "RandomUniform", results=_shape_results, in_order=True)
def random_uniform(
    *, shape: Sequence[int], dtype: str = "float32", seed: float | None = None, low: float = 0.0, high: float = 1.0
) -> Draw:
    """Draws from the uniform distribution from ``low`` to ``high``."""
    draw = _uniform(seed, low, high)
    return lambda: draw(shape, dtype)


@host_operator("", "RandomNormal", results=_shape_results, in_order=True)
def random_normal(
    *, shape: Sequence[int], dtype: str = "float32", seed: float | None = None, mean: float = 0.0, scale: float = 1.0
) -> Draw:
    """Draws from a normal distribution."""
    draw = _normal(seed, mean, scale)
    return lambda: draw(shape, dtype)


@host_operator("", "RandomUniformLike", results=_like_results, in_order=True)
def random_uniform_like(
    *, dtype: str | None = None, seed: float | None = None, low: float = 0.0, high: float = 1.0
) -> Draw:
    """Draws as RandomUniform, with the shape of the input."""
    draw = _uniform(seed, low, high)
    return lambda x: draw(x.shape, dtype or x.dtype.name)


@host_operator("", "RandomNormalLike", results=_like_results, in_order=True)
def random_normal_like(
    *, dtype: str | None = None, seed: float | None = None, mean: float = 0.0, scale: float = 1.0
) -> Draw:
    """Draws as RandomNormal, with the shape of the input."""
    draw = _normal(seed, mean, scale)
    return lambda x: draw(x.shape, dtype or x.dtype.name)


def _multinomial_results(x: HostValue, *, dtype: str = "int32", sample_size: int = 1, **_: Any) -> Results:
    return [((x.shape[0], sample_size), dtype)]


@host_operator("", "Multinomial", results=_multinomial_results, in_order=True)
def multinomial(*, dtype: str = "int32", sample_size: int = 1, seed: float | None = None) -> Draw:
    """Draws ``sample_size`` columns for each row of logarithms of probabilities, which need not sum to one."""
    generator = _generator(seed)

    def draw(x: Array) -> Array:
        weights = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        ends = np.cumsum(weights, 1)
        at = generator.random((x.shape[0], sample_size)) * ends[:, -1:]
        return np.asarray((at[:, :, None] >= ends[:, None, :]).sum(2), numpy_dtype(dtype))

    return draw


def _dropout_results(x: HostValue, *_: HostValue | None, **__: Any) -> Results:
    return [(x.shape, x.dtype), (x.shape, "bool")]


@host_operator("", "Dropout", since=12, results=_dropout_results, in_order=True)
def dropout(*, seed: int | None = None) -> Draw:
    """Drops elements with probability ``ratio`` and scales the others, so that the mean stays (training); returns the
    mask too.

    Draws as ONNX's reference does from the same seed.
    """
    generator = np.random.RandomState(None if seed is None else seed % (1 << 32))

    def draw(x: Array, ratio: Array | None = None, training: Array | None = None) -> tuple[Array, Array]:
        share = 0.5 if ratio is None else float(ratio.reshape(-1)[0])
        if training is None or not training.reshape(-1)[0] or share == 0:
            return x, np.ones(x.shape, np.bool_)
        retained: Array = np.asarray(generator.uniform(0, 1, x.shape) >= share)
        wide = x.astype(np.float64) / (1 - share)
        return np.where(retained, wide, 0).astype(x.dtype), retained

    return draw
