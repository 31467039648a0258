"""Rows of equal elements: normalized to exactly zero whatever their length, and of hardly any variance by squares."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.ops.one_node import Array, run_node

#: Lengths, and targets in turn, by a fixed seed.
LENGTHS = Random(14).sample(range(1, 5000), 12)
TARGETS = ["llvm", "c", "llvm -mcpu=generic"]


def equal(rows: int, length: int) -> Array:
    """Rows [rows, length] of one number each, of many magnitudes, none a short binary fraction."""
    rng = np.random.default_rng(length)
    values = rng.normal(size=(rows, 1)) * 10.0 ** rng.integers(-3, 4, (rows, 1))
    return np.repeat(values.astype(np.float32), length, axis=1)


def ones(count: int) -> tuple[Array, Array]:
    return np.ones(count, np.float32), np.zeros(count, np.float32)


@pytest.mark.sample(5)
@pytest.mark.parametrize(("number", "length"), list(enumerate(LENGTHS)))
@pytest.mark.parametrize("op", ["LayerNormalization", "InstanceNormalization", "MeanVarianceNormalization"])
def test_equal_elements_are_normalized_to_zero(op: str, number: int, length: int) -> None:
    x, target = equal(4, length), TARGETS[number % len(TARGETS)]
    if op == "LayerNormalization":
        found = run_node(op, [x, *ones(length)], {1, 2}, target=target, epsilon=1e-12)[0]
    elif op == "InstanceNormalization":
        found = run_node(op, [x[None], *ones(4)], {1, 2}, target=target, epsilon=1e-12)[0]
    else:
        found = run_node(op, [x], set(), target=target, axes=[1])[0]
    assert not found.any()


@pytest.mark.sample(2)
@pytest.mark.parametrize(("number", "length"), list(enumerate(LENGTHS)))
@pytest.mark.parametrize("axis", [0, 1])
def test_equal_elements_vary_little_by_squares(axis: int, number: int, length: int) -> None:
    """``E[x^2] - E[x]^2``, as models of TensorFlow and JAX compute it: what is left is what the two sums are off by."""
    x = np.repeat(np.random.default_rng(length).uniform(1, 2, (16, 1)).astype(np.float32), length, axis=1)
    x, target = (np.ascontiguousarray(x.T) if axis == 0 else x), TARGETS[number % len(TARGETS)]
    total, squares = (
        run_node(op, [x, np.array([axis])], {1}, target=target)[0].astype(np.float64) / length
        for op in ("ReduceSum", "ReduceSumSquare")
    )
    exact = x.astype(np.float64).mean(axis, keepdims=True) ** 2
    # Equal terms round one way, so that errors grow with the length of a chain. None is longer than 32 terms here, 32
    # blocks of these, or what 1024 go into the length; longer ones were off by 4e-6 to 1.7e-5.
    assert np.abs((squares - total**2) / exact).max() < 4e-6
