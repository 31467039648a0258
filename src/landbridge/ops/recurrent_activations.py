"""The activations of recurrent layers, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ops.activation import softplus_of
from landbridge.ops.context import OpContext

Activation: TypeAlias = Callable[[ScalarBuilder, Value], Value]


def activations_of(c: OpContext, defaults: Sequence[str], directions: int) -> list[list[Activation]]:
    """Returns the activations of each direction."""
    names = [n.lower() for n in c.attribute("activations") or list(defaults) * directions]
    alphas = list(c.attribute("activation_alpha") or [])
    betas = list(c.attribute("activation_beta") or [])
    clip = c.attribute("clip")
    created = []
    for name in names:
        alpha = alphas.pop(0) if alphas and name in _WITH_ALPHA else _WITH_ALPHA.get(name, 0.0)
        beta = betas.pop(0) if betas and name in ("hardsigmoid", "affine", "scaledtanh") else 0.5
        created.append(_clipped(_activation(c, name, alpha, beta), clip))
    size = len(defaults)
    return [created[i * size : (i + 1) * size] for i in range(directions)]


_WITH_ALPHA = {
    "hardsigmoid": 0.2, "leakyrelu": 0.01, "elu": 1.0, "thresholdedrelu": 1.0, "affine": 1.0, "scaledtanh": 1.0
}  # fmt: skip


def _activation(c: OpContext, name: str, alpha: float, beta: float) -> Activation:
    table: dict[str, Activation] = {
        "sigmoid": lambda s, v: s.sigmoid(v),
        "tanh": lambda s, v: s.math("tanh", v),
        "relu": lambda s, v: s.maximum(v, 0.0),
        "affine": lambda s, v: v * alpha + beta,
        "leakyrelu": lambda s, v: s.select(v < 0, v * alpha, v),
        "thresholdedrelu": lambda s, v: s.select(v > alpha, v, 0.0),
        "scaledtanh": lambda s, v: s.math("tanh", v * beta) * alpha,
        "hardsigmoid": lambda s, v: s.minimum(s.maximum(v * alpha + beta, 0.0), 1.0),
        "elu": lambda s, v: s.select(v < 0, (s.exp(v) - 1.0) * alpha, v),
        "softsign": lambda s, v: v / (s.math("abs", v) + 1.0),
        "softplus": softplus_of,
    }
    if name not in table:
        raise c.unsupported(f"activation {name!r}; known: {', '.join(sorted(table))}")
    return table[name]


def _clipped(f: Activation, clip: float | None) -> Activation:
    if not clip:
        return f
    return lambda s, v: f(s, s.minimum(s.maximum(v, -clip), clip))
