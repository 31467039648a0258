"""One node beside onnxruntime's kernel of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, numpy_helper, parser

import landbridge as lb

Array = np.ndarray[Any, Any]


def model_of(text: str, opset: int, constants: Mapping[str, Array] | None = None) -> ModelProto:
    """The model of ``text``, in ONNX's syntax from its inputs on, with initializers ``constants``."""
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> g {text}')
    for name, array in (constants or {}).items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def found_and_wanted(model: ModelProto, feeds: Mapping[str, Array], **options: Any) -> tuple[Array, Array]:
    """The first output of ``model`` for ``feeds``, by Landbridge compiled with ``options``, and by onnxruntime."""
    (want,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    program = lb.compile(model, **options)
    (found,) = lb.Session(program)(*(feeds[spec.name] for spec in program.main.inputs))
    return np.asarray(found), want
