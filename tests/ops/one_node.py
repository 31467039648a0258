"""Models of one node, compiled and run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, defs, helper, shape_inference

import landbridge as lb
from tests.ops.elementwise_models import target_of

Array = np.ndarray[Any, Any]


def takes(op: str, dtype: str, opset: int = 21) -> bool:
    """Whether ONNX has the operator for a first operand of ``dtype``."""
    schema = defs.get_schema(op, opset)
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    name = {"float32": "float", "float64": "double"}.get(dtype, dtype)
    return f"tensor({name})" in allowed[schema.inputs[0].type_str]


def one_node(
    op: str,
    arrays: Sequence[Array | None],
    constants: Collection[int] = (),
    outputs: int = 1,
    opset: int = 21,
    **attributes: Any,
) -> ModelProto:
    """A model of one node whose inputs are like ``arrays``; those numbered in ``constants`` are initializers."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(arrays)]
    given = [(i, names[i], a, helper.np_dtype_to_tensor_dtype(a.dtype)) for i, a in enumerate(arrays) if a is not None]
    results = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, **attributes)],
        op,
        [helper.make_tensor_value_info(n, kind, a.shape) for i, n, a, kind in given if i not in constants],
        [helper.make_empty_tensor_value_info(y) for y in results],  # inferred below
        [helper.make_tensor(n, kind, a.shape, a.tobytes(), raw=True) for i, n, a, kind in given if i in constants],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return shape_inference.infer_shapes(model)


def run_node(
    op: str,
    arrays: Sequence[Array | None],
    constants: Collection[int] = (),
    outputs: int = 1,
    target: str = "llvm",
    opset: int = 21,
    threads: int = 1,
    **attributes: Any,
) -> list[Array]:
    """The outputs of a node of ``arrays``; inputs numbered in ``constants`` are part of the model. ``target``
    is one of KINDS, or text, as for ``target_of``."""
    model = one_node(op, arrays, constants, outputs, opset, **attributes)
    inputs = [(f"x{i}", a) for i, a in enumerate(arrays) if a is not None and i not in constants]
    made, device = target_of(target)
    executable = lb.compile(model, made)
    if device is None:
        return [np.array(y) for y in lb.Session(executable, num_threads=threads)(*(a for _, a in inputs))]
    session = lb.Session(executable, device=device)
    for name, a in inputs:
        session.set_input(name, a)
    session.run()
    return [np.array(session.get_output(i).to_device("cpu")) for i in range(outputs)]
