"""Activations of ``com.microsoft``."""

from __future__ import annotations

from landbridge.errors import UnsupportedOperatorError
from landbridge.frontend.onnx.bodies.node_facts import NodeFacts, like, number
from landbridge.operators import definition

_MS = "com.microsoft"


@definition(_MS, "Gelu", inputs="X", outputs="Y")
def gelu(n: NodeFacts) -> str:
    return "Y = Gelu (X)"


@definition(_MS, "BiasGelu", inputs="A, B", outputs="C")
def bias_gelu(n: NodeFacts) -> str:
    return "s = Add (A, B) C = Gelu (s)"


@definition(_MS, "FastGelu", inputs="X, bias", outputs="Y")
def fast_gelu(n: NodeFacts) -> str:
    sums = "s = Add (X, bias)" if n.has("bias") else "s = Identity (X)"
    return f'{sums} Y = Gelu <approximate = "tanh"> (s)'


@definition(_MS, "QuickGelu", inputs="X", outputs="Y")
def quick_gelu(n: NodeFacts) -> str:
    return f"{like('a', n.attribute('alpha', 1.702), 'X')} s = Mul (a, X) p = Sigmoid (s) Y = Mul (X, p)"


def activation(kind: str, x: str, y: str, parameters: tuple[float, ...]) -> str:
    """Returns a statement that applies the activation ``kind`` of a fused operator, with its ``parameters``."""
    if kind in ("", "Identity"):
        return f"{y} = Identity ({x})"
    if kind in ("Relu", "Tanh", "Sigmoid", "Softplus", "Softsign"):
        return f"{y} = {kind} ({x})"
    named = {
        "LeakyRelu": ("alpha",),
        "Elu": ("alpha",),
        "ThresholdedRelu": ("alpha",),
        "HardSigmoid": ("alpha", "beta"),
    }
    if kind in named:
        values = ", ".join(f"{k} = {number(v)}" for k, v in zip(named[kind], parameters, strict=False))
        return f"{y} = {kind} <{values}> ({x})" if values else f"{y} = {kind} ({x})"
    if kind == "Clip" and len(parameters) > 1:
        low, high = parameters[:2]
        return f"{like('low', low, x)} {like('high', high, x)} {y} = Clip ({x}, low, high)"
    known = ", ".join(["Relu", "Tanh", "Sigmoid", "Softplus", "Softsign", "Clip", *named])
    raise UnsupportedOperatorError(f"activation {kind!r} with {len(parameters)} parameters; legal: {known}")
