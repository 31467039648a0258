"""Infers types of outputs for which a file has only the name."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import onnx

if TYPE_CHECKING:
    from onnx import ModelProto

#: The prefix of names that onnx gives to unknown dimensions.
_INVENTED = "unk__"


def type_outputs(proto: ModelProto) -> list[str]:
    """Give outputs of ``proto`` without a type the one that onnx infers, if it does; returns their names."""
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
