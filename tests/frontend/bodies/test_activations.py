"""Activations of ``com.microsoft``."""

from __future__ import annotations

import numpy as np

from tests.frontend.bodies.against_onnxruntime import check

X = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32) * 3


def test_activations() -> None:
    check(
        """g (float[N, 8] x, float[8] b)
            => (float[N, 8] p, float[N, 8] q, float[N, 8] r, float[N, 8] s, float[N, 8] t) {
            p = com.microsoft.Gelu (x)
            q = com.microsoft.BiasGelu (x, b)
            r = com.microsoft.FastGelu (x)
            s = com.microsoft.FastGelu (x, b)
            t = com.microsoft.QuickGelu <alpha = 1.3> (x) }""",
        {"x": X, "b": X[0]},
    )
