"""Lists the contents of an ONNX file without compiling it: operators, weights, and the declared inputs and outputs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx_ir as ir

from landbridge.frontend.onnx.data_rules import OF_THE_MODEL, DataRules
from landbridge.frontend.onnx.known_operators import implementations
from landbridge.frontend.onnx.load import load_model
from landbridge.records import record


@record(frozen=True)
class OperatorCount:
    """How often a model contains an operator, with functions inlined; branches and bodies of loops count once."""

    domain: str
    name: str
    opset: int
    count: int
    supported: bool


@record(frozen=True)
class DeclaredTensor:
    """An input or output as the file declares it. An extent is an int, a name, or ``?`` if unknown; ``shape`` is None
    if the file declares none.
    """

    name: str
    shape: tuple[int | str, ...] | None
    dtype: str


@record(frozen=True)
class ModelContents:
    """The contents of a model file, with operators by falling count.

    ``parameters`` is the number of elements of all weights and constants, ``weight_bytes`` the bytes that these take.
    Initializers that are also inputs are weights, not inputs.
    """

    inputs: tuple[DeclaredTensor, ...]
    outputs: tuple[DeclaredTensor, ...]
    operators: tuple[OperatorCount, ...]
    parameters: int
    weight_bytes: int


def contents_of(file: Path, max_nodes: int, rules: DataRules = OF_THE_MODEL) -> ModelContents:
    """Returns the contents of ``file``, with external data as ``rules`` allow.

    Raises ImportModelError if it is not a model, BudgetError if it unfolds into too many nodes.
    """
    model = load_model(file, max_nodes, rules).model
    nodes = list(ir.traversal.RecursiveGraphIterator(model.graph))
    counts = Counter(
        (node.domain, node.op_type, node.version or model.opset_imports.get(node.domain, 1)) for node in nodes
    )
    operators = tuple(
        OperatorCount(domain or "ai.onnx", name, opset, count, bool(implementations(domain, name, opset)))
        for (domain, name, opset), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )
    weights = [v.const_value for graph in model.graphs() for v in graph.initializers.values()]
    weights += [a.value for node in nodes for a in node.attributes.values() if a.type == ir.AttributeType.TENSOR]
    known = [weight for weight in weights if weight is not None]
    inputs = [value for value in model.graph.inputs if value.name not in model.graph.initializers]
    return ModelContents(
        tuple(map(_declared, inputs)),
        tuple(map(_declared, model.graph.outputs)),
        operators,
        sum(int(weight.size) for weight in known),
        sum(int(weight.nbytes) for weight in known),
    )


def _declared(value: ir.Value) -> DeclaredTensor:
    shape = (
        None if value.shape is None else tuple(e if isinstance(e, int) else str(e.value or "?") for e in value.shape)
    )
    dtype = value.type.dtype.numpy().name if isinstance(value.type, ir.TensorType) else str(value.type)
    return DeclaredTensor(str(value.name), shape, dtype)
