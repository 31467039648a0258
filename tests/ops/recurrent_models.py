"""Networks of one LSTM, GRU or RNN."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DIRECTIONS = ("forward", "reverse", "bidirectional")


def network(
    kind: str,
    steps: int | str,
    batch: int | str,
    inputs: int,
    hidden: int,
    direction: str = "forward",
    *,
    states: bool = False,
    lengths: bool = False,
    peepholes: bool = False,
    **attributes: Any,
) -> onnx.ModelProto:
    """Weights are constants, seeded, and small enough for a state to be forgotten; ``x``, ``lens``, ``h`` and ``c`` are
    inputs, in this order, and ``y``, ``last`` and ``cell`` the outputs."""
    rng, count, rows = np.random.default_rng(hidden), 2 if direction == "bidirectional" else 1, GATES[kind] * hidden
    made = []

    def weights(name: str, *shape: int) -> str:
        array = rng.standard_normal(shape) / np.sqrt(shape[-1])
        made.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    batch_first = attributes.get("layout")
    given: dict[str, list[int | str]] = {"x": [batch, steps, inputs] if batch_first else [steps, batch, inputs]}
    operands = [
        "x",
        weights("w", count, rows, inputs),
        weights("r", count, rows, hidden),
        weights("b", count, 2 * rows),
    ]
    operands.append("lens" if lengths else "")
    if lengths:
        given["lens"] = [batch]
    for name in ("h", "c") if kind == "LSTM" else ("h",):
        operands.append(name if states else "")
        if states:
            given[name] = [batch, count, hidden] if batch_first else [count, batch, hidden]
    if peepholes:
        operands.append(weights("p", count, 3 * hidden))
    outputs = ["y", "last", *(["cell"] if kind == "LSTM" else [])]
    node = helper.make_node(kind, operands, outputs, hidden_size=hidden, direction=direction, **attributes)
    types = {"lens": TensorProto.INT32}
    graph = helper.make_graph(
        [node],
        "recurrent",
        [helper.make_tensor_value_info(n, types.get(n, TensorProto.FLOAT), s) for n, s in given.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * (4 if n == "y" else 3)) for n in outputs],
        made,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def feeds_of(model: onnx.ModelProto, steps: int = 0, batch: int = 0) -> dict[str, Array]:
    """Seeded inputs; ``steps`` and ``batch`` are what open dimensions called T and N are. Lengths are 0 to all."""
    rng, values, feeds = np.random.default_rng([steps, batch]), {"T": steps, "N": batch}, {}
    for value in model.graph.input:
        shape = [d.dim_value or values[d.dim_param] for d in value.type.tensor_type.shape.dim]
        if value.name == "lens":
            feeds[value.name] = rng.integers(0, feeds["x"].shape[0] + 1, shape).astype(np.int32)
        else:
            feeds[value.name] = rng.standard_normal(shape).astype(np.float32)
    return feeds
