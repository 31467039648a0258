"""Operators of the domain ``landbridge``: the logarithm of the gamma function and its derivative, computed in
float64.
"""

from __future__ import annotations

import numpy as np

from landbridge.operators import Array, HostValue, Results, host_operator

#: From here on the series below, of Bernoulli numbers, are exact to float64.
_LARGE = 10
#: B(2k) / (2k (2k - 1)) for the logarithm, by odd powers of 1/x, and B(2k) / 2k for the derivative, by even ones.
_LOG_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_DERIVATIVE_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def _same(x: HostValue) -> Results:
    return [(x.shape, x.dtype)]


@host_operator("landbridge", "LogGamma", results=_same)
def log_gamma(x: Array) -> Array:
    """Computes the logarithm of the absolute value of the gamma function; inf at its poles."""
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        mirrored, z, product = _climbed(wide, np.multiply, np.positive)
        found = (z - 0.5) * np.log(z) - z + np.log(2 * np.pi) / 2 - np.log(product) + _series(_LOG_SERIES, z) / z
        found = np.where(np.isposinf(z), np.inf, found)
        sine = np.abs(np.sin(np.pi * (wide - np.rint(wide))))
        found = np.where(mirrored, np.log(np.pi) - np.log(sine) - found, found)
        return np.where(np.isinf(wide), np.inf, found).astype(x.dtype)


@host_operator("landbridge", "Digamma", results=_same)
def digamma(x: Array) -> Array:
    """Computes the derivative of `log_gamma`; -inf at 0, NaN at the other poles."""
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        mirrored, z, total = _climbed(wide, np.add, np.reciprocal)
        found = np.log(z) - 0.5 / z - _series(_DERIVATIVE_SERIES, z) / (z * z) - total
        away = wide - np.rint(wide)
        found = np.where(mirrored, found - np.pi / np.tan(np.pi * away), found)
        found = np.where(mirrored & (away == 0), np.where(wide == 0, np.copysign(np.inf, -wide), np.nan), found)
        return np.where(np.isposinf(wide), np.inf, found).astype(x.dtype)


def _climbed(x: Array, join: np.ufunc, term: np.ufunc) -> tuple[Array, Array, Array]:
    """Returns where ``x`` is below 1/2; 1 - x there, else x, raised by ones to at least ``_LARGE``; and the terms of
    all numbers passed, joined.
    """
    mirrored = x < 0.5
    z = np.where(mirrored, 1 - x, x)
    joined = np.full_like(z, join.identity)
    for _ in range(_LARGE):
        small = z < _LARGE
        joined = np.where(small, join(joined, term(z)), joined)
        z = np.where(small, z + 1, z)
    return mirrored, z, joined


def _series(coefficients: tuple[float, ...], z: Array) -> Array:
    """Computes the series with ``coefficients`` in powers of 1/z^2."""
    step, total = 1 / (z * z), np.zeros_like(z)
    for coefficient in reversed(coefficients):
        total = total * step + coefficient
    return total
