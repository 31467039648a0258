"""The gamma function against Python's, and its derivative by the equations that it obeys."""

from __future__ import annotations

import math

import numpy as np

from landbridge.host_operators.gamma import digamma, log_gamma

X = np.concatenate([np.linspace(-20.3, 40, 601), [1e-9, -1e-9, 1.0, 2.0, 1e6, 1e300]])


def test_the_logarithm() -> None:
    expected = [math.lgamma(x) for x in X]
    np.testing.assert_allclose(log_gamma(X), expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(log_gamma(X[:601].astype(np.float32)), expected[:601], rtol=2e-4, atol=1e-5)  # of X


def test_the_derivative() -> None:
    positive = X[X > 1e-3]  # nearer to 0 the two terms cancel
    np.testing.assert_allclose(digamma(positive + 1), digamma(positive) + 1 / positive, rtol=1e-12, atol=1e-12)
    mirrored = np.array([0.1, 0.3, 0.45, 2.2, 7.9])
    np.testing.assert_allclose(
        digamma(1 - mirrored), digamma(mirrored) + np.pi / np.tan(np.pi * mirrored), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(digamma(np.array([1.0, 0.5])), [-np.euler_gamma, -np.euler_gamma - 2 * np.log(2)])


def test_poles_and_ends() -> None:
    ends = np.array([0.0, -1.0, -7.0, np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(log_gamma(ends), [np.inf] * 5 + [np.nan])
    np.testing.assert_array_equal(digamma(ends[:4]), [-np.inf, np.nan, np.nan, np.inf])
