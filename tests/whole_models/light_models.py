"""The light models of the onnx wheel with seeded random weights.

Their stored weights are all equal, which hides permuted channels. Here convolutions and matrices are scaled by their
fan-in and normalizations kept near the identity, so activations neither die nor saturate and every class differs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx


def light_model(name: str, seed: int = 0) -> onnx.ModelProto:
    """``light_<name>.onnx`` with its ConstantOfShape weights replaced by random initializers."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    model = onnx.load(folder / f"light_{name}.onnx")
    graph, rng = model.graph, np.random.default_rng(seed)
    stored = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    made = {n.output[0]: stored[n.input[0]] for n in graph.node if n.op_type == "ConstantOfShape"}
    role = {v: (n.op_type, i) for n in graph.node for i, v in enumerate(n.input)}
    for weight, shape in {**made, **_float_shapes(stored)}.items():
        array = _draw(rng, role.get(weight, ("", 0)), tuple(int(e) for e in shape))
        if weight in stored:
            graph.initializer.remove(next(t for t in graph.initializer if t.name == weight))
        graph.initializer.append(onnx.numpy_helper.from_array(array, weight))
    retained = [n for n in graph.node if n.op_type != "ConstantOfShape"]
    del graph.node[:]
    graph.node.extend(retained)
    if model.ir_version < 4:
        model.ir_version = 4  # from here on an initializer need not be an input as well
    return model


def _float_shapes(stored: dict[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    return {name: a.shape for name, a in stored.items() if a.dtype == np.float32}


def _draw(rng: np.random.Generator, role: tuple[str, int], shape: tuple[int, ...]) -> np.ndarray:
    """A weight for its role: (operator, position among its inputs)."""
    operator, position = role
    if operator == "BatchNormalization":
        if position == 1:  # below 1, or every residual sum would double the variance
            return rng.uniform(0.3, 0.6, shape).astype(np.float32)
        if position == 4:
            return rng.uniform(0.5, 1.5, shape).astype(np.float32)
        return rng.normal(0, 0.1, shape).astype(np.float32)
    if position == 1 and len(shape) > 1:
        fan_in = int(np.prod(shape[1:]))
        return (rng.normal(0, 1, shape) * np.sqrt(2 / fan_in)).astype(np.float32)
    return rng.normal(0, 0.1, shape).astype(np.float32)


def input_name(model: onnx.ModelProto) -> str:
    """The one input that is no weight."""
    weights = {t.name for t in model.graph.initializer}
    return next(v.name for v in model.graph.input if v.name not in weights)


def picture(seed: int = 0) -> np.ndarray:
    """A 1x3x224x224 input."""
    return np.random.default_rng(seed).normal(0, 1, (1, 3, 224, 224)).astype(np.float32)
