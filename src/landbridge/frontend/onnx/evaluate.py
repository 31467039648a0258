"""Nodes whose inputs are all constants, evaluated by onnx's reference implementation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from landbridge.dtypes import dtype_name
from landbridge.ir.limits import most_bytes
from landbridge.ops.context import converted

Array = np.ndarray[Any, Any]

_RANDOM = {
    "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli",
}  # fmt: skip


#: Results of more bytes are computed when the model runs, unless an operand is as large.
_FOLDED = 1 << 28
#: Operands of so many elements may be shapes, which others' shapes follow from.
_SMALL = 64


def _bytes(inferred: Any) -> int:
    """Bytes of a result by shape inference; 0 where it does not know."""
    tensor = inferred.tensor_type
    size = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize if tensor.elem_type else 0
    for dim in tensor.shape.dim:
        size *= dim.dim_value if dim.HasField("dim_value") else 0
    return int(size)


def _contradicts(array: Array, inferred: Any) -> bool:
    """Whether a result is not of the shape that is inferred: the reference has faults of its own."""
    tensor = inferred.tensor_type
    if not tensor.HasField("shape"):
        return False
    dims = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
    return len(dims) != array.ndim or any(d not in (None, e) for d, e in zip(dims, array.shape, strict=True))


def foldable(node: ir.Node) -> bool:
    """Whether a node with constant inputs may be replaced by its result."""
    graphs = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
    return (
        not node.domain and node.op_type not in _RANDOM and not any(a.type in graphs for a in node.attributes.values())
    )


def _as_kernels(op_type: str, inputs: Sequence[Array | None], result: Array) -> Array:
    """``result`` with the values that kernels give where ONNX and C leave them open (docs/numbers.md)."""
    x, *others = inputs
    if x is None:
        return result
    if op_type in ("Cast", "CastLike") and result.dtype.kind in "iu":
        return converted(x, dtype_name(result.dtype)).reshape(result.shape)
    if op_type == "Div" and result.dtype.kind in "iu" and others[0] is not None:
        return np.where(others[0] == 0, x, result).astype(result.dtype)
    return result


def evaluate(node: ir.Node, inputs: Sequence[Array | None], opset: int) -> list[Array] | None:
    """The outputs of one node, in the dtypes the operator's schema gives; None when it cannot be evaluated."""
    try:
        proto = ir.serde.serialize_node(node)
    except ir.serde.SerdeError:  # text that is no UTF-8
        return None
    names = [n if array is not None else "" for n, array in zip(proto.input, inputs, strict=True)]
    feeds = {n: array for n, array in zip(names, inputs, strict=True) if array is not None}
    types = {
        n: onnx.helper.make_tensor_type_proto(onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    }
    del proto.input[:]
    proto.input.extend(names)
    graph = onnx.helper.make_graph(
        [proto],
        "node",
        [onnx.ValueInfoProto(name=n, type=t) for n, t in types.items()],
        [onnx.ValueInfoProto(name=n) for n in proto.output if n],
    )
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, "")
        inferred = onnx.shape_inference.infer_node_outputs(
            schema,
            proto,
            types,
            {n: onnx.numpy_helper.from_array(a, n) for n, a in feeds.items() if a.size <= _SMALL},
            opset_imports=[onnx.helper.make_opsetid("", opset)],
        )
        largest = min(max(_FOLDED, *(a.nbytes for a in feeds.values())), most_bytes())
        if any(_bytes(t) > largest for t in inferred.values()):
            return None
        from onnx.reference import ReferenceEvaluator  # 0.1 s, which models without constants to fold are spared

        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(graph, opsets={"": opset}).run(None, feeds)
    except Exception:
        # Whatever the reference cannot do is left to the handler, which states the reason if it cannot either.
        return None
    by_name = dict(zip((n for n in proto.output if n), results, strict=True))
    outputs = []
    for name in proto.output:
        if not name:
            outputs.append(np.zeros(0, np.float32))
            continue
        if not isinstance(by_name[name], np.ndarray | np.generic):
            return None
        array = np.asarray(by_name[name])
        kind = inferred[name].tensor_type.elem_type if name in inferred else 0
        if name in inferred and _contradicts(array, inferred[name]):
            return None
        if kind:
            array = array.astype(onnx.helper.tensor_dtype_to_np_dtype(kind), copy=False)
        outputs.append(_as_kernels(node.op_type, inputs, array))
    return outputs
