"""The body of a node whose operator a definition expresses by others: its text, parsed and completed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_ir as ir

from landbridge.frontend.onnx.bodies.node_facts import NodeFacts
from landbridge.operators import Definition

#: The opset that bodies are written for.
BODY_OPSET = 24


class NodeBody(NamedTuple):
    """The body of a node, and the values of its inputs: those of the node, and constants of the body.

    ``reads``: the arrays among the node's inputs whose elements the definition has read.
    """

    function: ir.Function
    inputs: list[Any]
    reads: list[np.ndarray[Any, Any]]


def body_of(definition: Definition, node: ir.Node, inputs: Sequence[Any]) -> NodeBody | None:
    """Returns the body that ``definition`` gives ``node``, of ``inputs`` as a walk has them; None where it leaves the
    node to others.

    Raises UnsupportedOperatorError for a form of the operator that the definition has no body for.
    """
    names = _input_names(definition.inputs, len(inputs))
    wanted = [name for name, value in zip(definition.outputs, node.outputs, strict=False) if value.name]
    values = [*zip(names, node.inputs, strict=False), *zip(definition.outputs, node.outputs, strict=False)]
    declared = {name: value.shape for name, value in values if value is not None and value.shape is not None}
    facts = NodeFacts(node, dict(zip(names, inputs, strict=False)), wanted, declared)
    lines = definition.function(facts)
    if lines is None:
        return None
    created = _parsed(node.op_type, [*names, *facts.constants], definition.outputs, lines)
    missing = sorted({*wanted} - {name for inner in created.node for name in inner.output})
    if missing:
        raise facts.unsupported(f"output {', '.join(missing)} is not made; use the others")
    del created.output[:]
    created.output.extend(definition.outputs[: len(node.outputs)])
    for name in created.output:
        if name not in wanted:
            created.node.append(onnx.helper.make_node("Constant", [], [f"no_{name}"], value_int=0))
    created.output[:] = [name if name in wanted else f"no_{name}" for name in created.output]
    given = [*inputs, *[None] * (len(names) - len(inputs)), *facts.constants.values()]
    return NodeBody(ir.serde.deserialize_function(created), given, facts.reads)


def _input_names(formal: Sequence[str], count: int) -> list[str]:
    if not formal[-1].startswith("*"):
        return list(formal)
    fixed, last = formal[:-1], formal[-1][1:]
    return [*fixed, *(f"{last}{i}" for i in range(count - len(fixed)))]


def _parsed(op_type: str, inputs: Sequence[str], outputs: Sequence[str], lines: str) -> onnx.FunctionProto:
    text = f"""<domain: "body", opset_import: ["": {BODY_OPSET}, "com.microsoft": 1, "ai.onnx.ml": 3, "landbridge": 1]>
        {op_type} ({", ".join(inputs)}) => ({", ".join(outputs)}) {{ {lines} }}"""
    return onnx.parser.parse_function(text)
