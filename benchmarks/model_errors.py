"""Errors of whole models against float64: ours compared with onnxruntime's, of the models of ``peers.py``.

python benchmarks/model_errors.py [--only OCR] [--write]

The reference is the same file with every float a double, computed node by node by onnx's reference evaluator and, where
that is slow or wrong, by ``exact_operators.py``: neither shares code with the two that are measured. An error is the
root of the mean square of what an output is off by, over that of the output; a model's is that of its worst output of
floats. It can be done in pieces: what each has measured stays in the folder of fetched models, and ``--write`` makes
the table of all.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from exact_operators import OPERATORS, FlatSoftmax
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from peers import MODELS, Model, cache_folder, inputs_of

import landbridge as lb

os.environ.pop("LANDBRIDGE_CACHE", None)  # nothing is timed

from measure import write

Array = np.ndarray[Any, Any]
RESULTS = cache_folder() / "errors"


def exact_outputs(model: ModelProto, inputs: Mapping[str, Array]) -> Sequence[Array]:
    """What ``model`` makes of ``inputs`` with every float a double."""
    wide = ModelProto()
    wide.CopyFrom(model)
    _widen(wide.graph)
    if next(each.version for each in model.opset_import if not each.domain) < 13:
        _flatten_softmax(wide)
    given = {name: a.astype(np.float64) if a.dtype == np.float32 else a for name, a in inputs.items()}
    return ReferenceEvaluator(wide, new_ops=[*OPERATORS, FlatSoftmax]).run(None, given)


def _flatten_softmax(model: ModelProto) -> None:
    """Softmax of opsets before 13 by a name of its own, since the evaluator would read its axis as the last one's."""
    for node in model.graph.node:
        if node.op_type == "Softmax":
            node.op_type, node.domain = "FlatSoftmax", FlatSoftmax.op_domain
            if not node.attribute:
                node.attribute.append(helper.make_attribute("axis", 1))
    model.opset_import.append(helper.make_opsetid(FlatSoftmax.op_domain, 1))


def _widen(graph: GraphProto) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                _widen_tensor(attribute.t)
            elif attribute.type == onnx.AttributeProto.GRAPH:
                _widen(attribute.g)
            elif attribute.name in ("to", "dtype") and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE


def _widen_tensor(tensor: TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def error(found: Sequence[Array], exact: Sequence[Array]) -> float:
    """The largest relative error of an output of floats; 0 where there is none."""
    worst = 0.0
    for a, b in zip(found, exact, strict=True):
        if a.dtype.kind == "f" and b.size:
            off = a.astype(np.float64) - b
            worst = max(worst, float(np.sqrt((off**2).mean() / max((b.astype(np.float64) ** 2).mean(), 1e-300))))
    return worst


#: Inputs that are drawn where fewer than ``FEW`` numbers make up what a model gives: the rounding of one is luck, and
#: that of logits moves all scores together (of eight draws squeezenet has ratios of 0.58 to 2.36).
DRAWS, FEW = 10, 1000


def values_that_count(found: Sequence[Array]) -> float:
    """How many numbers make up the squares of ``found``: all where they are alike, one where it is much the largest
    (the participation ratio of Bell and Dean, "Atomic vibrations in vitreous silica", 1970)."""
    squares = np.concatenate([a.astype(np.float64).ravel() ** 2 for a in found if a.dtype.kind == "f"])
    return float(squares.sum() ** 2 / max((squares**2).sum(), 1e-300))


def measured(model: Model) -> dict[str, float]:
    """The errors of both; of several draws of the inputs, the root of the mean square."""
    file = model.path()
    executable = lb.compile(file, shapes=model.shapes)
    session, onnx_model = lb.Session(executable), onnx.load(file)
    onnxruntime.set_default_logger_severity(3)
    peer = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    inputs = inputs_of(executable, model)
    squares: dict[str, list[float]] = {"landbridge": [], "onnxruntime": []}
    draws = 1
    while len(squares["landbridge"]) < draws:
        ours = [np.array(np.asarray(y)) for y in session(*(inputs[spec.name] for spec in executable.main.inputs))]
        exact = exact_outputs(onnx_model, inputs)
        squares["landbridge"].append(error(ours, exact) ** 2)
        squares["onnxruntime"].append(error(peer.run(None, inputs), exact) ** 2)
        draws = DRAWS if values_that_count(ours) < FEW else 1
        inputs = inputs_of(executable, model, len(squares["landbridge"]))
    return {name: float(np.sqrt(np.mean(each))) for name, each in squares.items()}


#: A larger error of both is no rounding: the reference then takes an operator to mean something else than they do.
ROUNDING = 1e-3


def table(found: Mapping[str, Mapping[str, float]]) -> list[list[object]]:
    """A row for each model whose errors are of rounding."""
    return [
        [name, f"{each['landbridge']:.1e}", f"{each['onnxruntime']:.1e}", each["landbridge"] / each["onnxruntime"]]
        for name, each in found.items()
        if 0 < min(each.values()) < ROUNDING
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="measure models whose names have this in them")
    parser.add_argument("--write", action="store_true", help="make the table of all that was measured")
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    retained = {name: RESULTS / f"{name.replace(' ', '_')}.json" for name in MODELS}
    if options.write:
        rows = table({name: json.loads(file.read_text()) for name, file in retained.items() if file.exists()})
        write("model_errors", ["model", "Landbridge", "onnxruntime", "ours / theirs"], rows)
        return
    for name, model in MODELS.items():
        if options.only.lower() in name.lower():
            try:
                result = measured(model)
            except Exception as failure:  # a model that one of the three cannot run
                print(name, f"{type(failure).__name__}: {str(failure).splitlines()[0][:150]}", flush=True)
                continue
            retained[name].write_text(json.dumps(result))
            print(name, result, flush=True)


if __name__ == "__main__":
    main()
