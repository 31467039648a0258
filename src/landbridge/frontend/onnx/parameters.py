"""Parameters: weights of a model that a Session may replace, so that their values are not compiled in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from landbridge.errors import InputError
from landbridge.frontend.onnx.attributes import tensor_array


def promote_parameters(graph: ir.Graph, names: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
    """Make the weights ``names`` the last inputs of ``graph``; returns their values by name, in that order.

    A weight is an initializer or the output of a Constant node of the main graph. Raises InputError for other names,
    which suggests similar ones, and for a name given twice.
    """
    weights = _weights(graph)
    found: dict[str, np.ndarray[Any, Any]] = {}
    for name in names:
        if name in found:
            raise InputError(f"mutable= names {name!r} twice; name each weight once")
        if name not in weights:
            from difflib import get_close_matches  # slow to import

            close = get_close_matches(str(name), weights, 3)
            hint = f"did you mean {', '.join(map(repr, close))}?" if close else f"it has {len(weights)}"
            raise InputError(f"mutable= or unpacked= names {name!r}, which is no weight of the model; {hint}")
        found[name] = _promote(graph, weights[name])
    return found


def _weights(graph: ir.Graph) -> dict[str, ir.Value]:
    constants = (node.outputs[0] for node in graph if node.op_type == "Constant" and not node.domain)
    return {str(value.name): value for value in (*graph.initializers.values(), *constants)}


def _promote(graph: ir.Graph, value: ir.Value) -> np.ndarray[Any, Any]:
    tensor = ir.convenience.get_const_tensor(value)
    if tensor is None:
        raise InputError(f"mutable= or unpacked= names {value.name!r}, which has no data in the file")
    array = np.array(tensor_array(tensor))  # a copy: the file that it may be mapped from can be deleted
    name = str(value.name)
    producer = value.producer()
    if producer is None:
        graph.initializers.pop(name)
        if value in graph.inputs:  # files before IR version 4 list every weight as an input
            graph.inputs.remove(value)
    else:
        old, value = value, ir.Value(name=name)
        ir.convenience.replace_all_uses_with(old, value, replace_graph_outputs=True)
        graph.remove(producer, safe=True)
    value.const_value = None
    value.shape, value.type = ir.Shape(array.shape), ir.TensorType(tensor.dtype)
    graph.inputs.append(value)
    return array
