"""Types of outputs of which a file says the name alone."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import onnx

if TYPE_CHECKING:
    from onnx import ModelProto

#: How names begin that onnx gives to dimensions it knows nothing of.
_INVENTED = "unk__"


def type_outputs(proto: ModelProto) -> list[str]:
    """Give outputs of ``proto`` without a type the one that onnx infers, as far as it does; return their names."""
    untyped = [value for value in proto.graph.output if value.type.WhichOneof("value") is None]
    if untyped:
        with suppress(onnx.shape_inference.InferenceError, ValueError, RuntimeError):
            inferred = onnx.shape_inference.infer_shapes(proto).graph
            known = {value.name: value.type for value in (*inferred.value_info, *inferred.output, *inferred.input)}
            for value in untyped:
                if known[value.name].WhichOneof("value") is not None:
                    value.type.CopyFrom(known[value.name])
                    for dim in value.type.tensor_type.shape.dim:
                        if dim.dim_param.startswith(_INVENTED):
                            dim.ClearField("dim_param")
    return [value.name for value in untyped]
