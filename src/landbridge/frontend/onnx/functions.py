"""Operators that ONNX itself defines by other operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from xdsl.ir import SSAValue

from landbridge.dtypes import numpy_dtype
from landbridge.frontend.onnx.sequences import TensorSequence
from landbridge.ir.types import dtype_of, shape_of
from landbridge.ops.extent_arrays import array_dtype


def _type_proto(x: Any) -> onnx.TypeProto:
    if isinstance(x, TensorSequence):  # elements may differ in shape; nothing says the type of those of an empty one
        element = _type_proto(x.elements[0]) if x.elements else onnx.TypeProto(tensor_type={"elem_type": 1})
        element.tensor_type.ClearField("shape")
        return onnx.helper.make_sequence_type_proto(element)
    if isinstance(x, np.ndarray):
        dtype, shape = numpy_dtype(array_dtype(x)), x.shape
    elif isinstance(x, SSAValue):
        dtype, shape = numpy_dtype(dtype_of(x.type)), shape_of(x.type)
    else:
        return onnx.TypeProto()
    dims = [extent if isinstance(extent, int) else None for extent in shape]  # an open extent has no name here
    return onnx.helper.make_tensor_type_proto(onnx.helper.np_dtype_to_tensor_dtype(dtype), dims)


def _schema(domain: str, name: str, opset: int) -> Any | None:
    try:
        return onnx.defs.get_schema(name, opset, domain)
    except onnx.defs.SchemaError:
        return None


def has_function(domain: str, name: str, opset: int) -> bool:
    """Returns whether ONNX defines the operator by others, for all nodes or depending on the node."""
    schema = _schema(domain, name, opset)
    if schema is None:
        return False
    versions = (*schema.function_opset_versions, *schema.context_dependent_function_opset_versions)
    return any(version <= opset for version in versions)


def depends_on_types(domain: str, name: str, opset: int) -> bool:
    """Returns whether ONNX defines the operator by others that depend on the types of a node's inputs."""
    schema = _schema(domain, name, opset)
    return schema is not None and not schema.has_function and schema.has_context_dependent_function


def function_body(node: ir.Node, opset: int, inputs: Sequence[Any]) -> ir.Function | None:
    """Returns the operator's definition for this node, with its attributes filled in; None if ONNX has none."""
    schema = _schema(node.domain, node.op_type, opset)
    if schema is None:
        return None
    proto = ir.serde.serialize_node(node)
    data = b""
    if schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= opset]
        if versions:
            data = schema.get_function_with_opset_version(max(versions))
    elif schema.has_context_dependent_function:
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
        types = [_type_proto(x).SerializeToString() for x in inputs]
        if versions:
            data = schema.get_context_dependent_function_with_opset_version(
                max(versions), proto.SerializeToString(), types
            )
    if not data:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(data)
    if not function.node:
        return None
    return _specialized(function, proto, schema)


def _specialized(function: onnx.FunctionProto, node: onnx.NodeProto, schema: Any) -> ir.Function:
    """Returns the function with references to attributes replaced by the node's values or the defaults."""
    given = {a.name: a for a in node.attribute}
    for inner in function.node:
        retained = []
        for attribute in inner.attribute:
            if not attribute.ref_attr_name:
                retained.append(attribute)
                continue
            source = given.get(attribute.ref_attr_name)
            if source is None and attribute.ref_attr_name in schema.attributes:
                default = schema.attributes[attribute.ref_attr_name].default_value
                source = default if default.name else None
            if source is not None:
                copy = onnx.AttributeProto()
                copy.CopyFrom(source)
                copy.name = attribute.name
                retained.append(copy)
        del inner.attribute[:]
        inner.attribute.extend(retained)
    defined = {*function.input, *(name for inner in function.node for name in inner.output)}
    for name in function.output:
        if name not in defined:  # an optional output that this node does not have
            function.node.append(onnx.helper.make_node("Constant", [], [name], value_int=0))
    return ir.serde.deserialize_function(function)
