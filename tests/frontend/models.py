"""Small ONNX models written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from landbridge.frontend.onnx.import_request import ImportRequest
from landbridge.frontend.onnx.importer import import_onnx
from landbridge.ir.module import IRModule
from landbridge.ir.verifier import verify
from landbridge.targets import Target
from tests.ir.interpreter import run_module

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name: str, shape: Sequence[int | str | None] | None, kind: int = FLOAT) -> onnx.ValueInfoProto:
    """A typed value; without a shape where nobody reads it, which the checker wants written as an empty one."""
    return helper.make_tensor_value_info(name, kind, () if shape is None else shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[str | onnx.ValueInfoProto],
    weights: Mapping[str, Any] | None = None,
    opset: int = 18,
    **extra: Any,
) -> onnx.ModelProto:
    """A model; an output given by name only is a float of unknown shape."""
    graph = helper.make_graph(
        nodes,
        "graph",
        inputs,
        [value(v, None) if isinstance(v, str) else v for v in outputs],
        [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in (weights or {}).items()],
    )
    imports = [helper.make_opsetid("", opset), *extra.pop("opset_imports", ())]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, **extra)


def imported(source: Any, shapes: Mapping[str, Sequence[int]] | None = None, **options: Any) -> IRModule:
    """The verified module of a model."""
    module = import_onnx(ImportRequest(source, (Target("llvm"),), shapes=shapes, **options)).module
    verify(module)
    return module


def run(source: Any, **inputs: np.ndarray) -> list[np.ndarray]:
    """Outputs of a model, by the interpreter of the IR, the shapes of inputs as given here."""
    return run_module(imported(source, {n: a.shape for n, a in inputs.items()}), inputs)
