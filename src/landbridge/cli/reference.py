"""A reference run of an ONNX file by onnxruntime, with every intermediate value exposed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx

from landbridge.array_type import Array
from landbridge.errors import ImportModelError, LandbridgeError
from landbridge.frontend.onnx.data_rules import DataRules
from landbridge.frontend.onnx.external_protos import fill_external_data


class Reference:
    """Computes the values of one ONNX model for given inputs, by onnxruntime without optimizations."""

    def __init__(self, path: Path, allow_links: bool = False) -> None:
        self._runtime = onnxruntime_for("compare")
        self._path = path
        try:
            self._model = onnx.load(path, load_external_data=False)
            fill_external_data(self._model, path, DataRules(allow_links=allow_links))
        except ImportModelError:
            raise
        except Exception as error:  # protobuf has several exceptions, and no base class of its own
            raise ImportModelError(f"{path} is not an ONNX file: {error}") from error
        self.outputs = [output.name for output in self._model.graph.output]

    def values(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Returns every tensor that depends on an input, in the order of the file's nodes."""
        names = _dependent_values(self._model.graph)
        exposed = _with_outputs(self._model, [onnx.ValueInfoProto(name=name) for name in names])
        options = self._runtime.SessionOptions()
        options.graph_optimization_level = self._runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        try:
            session = self._runtime.InferenceSession(
                exposed.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            known = {value.name for value in session.get_inputs()}
            results = session.run(names, {n: array for n, array in feeds.items() if n in known})
        except Exception as error:  # onnxruntime's exceptions have no public common base
            raise LandbridgeError(f"onnxruntime cannot run {self._path}: {error}") from error
        return {n: value for n, value in zip(names, results, strict=True) if isinstance(value, np.ndarray)}

    def save_exposed(self, values: Mapping[str, Array], file: Path) -> None:
        """Writes the model with ``values`` as outputs, of exactly these types and shapes, to ``file``."""
        helper = onnx.helper
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in values.items()
        ]
        onnx.save(_with_outputs(self._model, infos), file)


def _dependent_values(graph: onnx.GraphProto) -> list[str]:
    """Returns the names of the node outputs that depend on an input of the graph, in node order."""
    constant = {initializer.name for initializer in graph.initializer}
    dependent = {value.name for value in graph.input if value.name not in constant}
    found: list[str] = []
    for node in graph.node:
        outer = {name for attribute in node.attribute for name in _captured(attribute)}
        if dependent.isdisjoint({*node.input, *outer}):
            continue
        names = [name for name in node.output if name]
        dependent.update(names)
        found.extend(names)
    return found


def _captured(attribute: onnx.AttributeProto) -> list[str]:
    """Returns the names that the subgraphs of a node read; their own names are included, which has no effect."""
    graphs = [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]
    return [
        name
        for graph in graphs
        for node in graph.node
        for name in (*node.input, *(inner for a in node.attribute for inner in _captured(a)))
    ]


def _with_outputs(model: onnx.ModelProto, outputs: list[onnx.ValueInfoProto]) -> onnx.ModelProto:
    exposed = onnx.ModelProto()
    exposed.CopyFrom(model)
    del exposed.graph.output[:]
    exposed.graph.output.extend(outputs)
    return exposed


def onnxruntime_for(command: str) -> ModuleType:
    """Returns onnxruntime; raises LandbridgeError saying that ``command`` needs it."""
    try:
        import onnxruntime
    except ImportError as error:
        raise LandbridgeError(
            f"{command} needs onnxruntime to compare with, which does not import ({error}); "
            "install it with: pip install onnxruntime"
        ) from error
    module: ModuleType = onnxruntime
    return module
