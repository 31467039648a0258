"""A checked onnx_ir Model from a file, bytes or a ModelProto; functions inlined, external data mapped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx_ir.passes.common import InlinePass

from landbridge.errors import ImportModelError

if TYPE_CHECKING:
    from onnx import ModelProto

OLDEST_OPSET = 7
#: A ModelProto larger than this cannot be serialized, so it is checked by path only.
_PROTO_LIMIT = 1 << 31


def load_model(source: str | Path | bytes | ModelProto) -> ir.Model:
    """Load, check and inline. Raises ImportModelError when ``source`` is no valid ONNX model of opset 7 or newer."""
    name = f"{source}" if isinstance(source, str | Path) else "the model"
    proto, folder = _proto(source, name)
    if not proto.opset_import or not proto.HasField("graph"):
        raise ImportModelError(f"{name} is no ONNX model: it has no graph or no opset; give an .onnx file")
    _check(proto, source, name)
    try:
        model = ir.serde.deserialize_model(proto)
        if folder is not None:
            ir.external_data.set_base_dir(model.graph, folder)
        InlinePass()(model)
    except Exception as error:
        raise ImportModelError(f"{name} could not be read: {error}") from error
    opset = model.opset_imports.get("", OLDEST_OPSET)
    if opset < OLDEST_OPSET:
        raise ImportModelError(
            f"{name} uses opset {opset}; {OLDEST_OPSET} and newer are supported: "
            "convert it with onnx.version_converter.convert_version"
        )
    return model


def _proto(source: str | Path | bytes | ModelProto, name: str) -> tuple[ModelProto, Path | None]:
    """The parsed model without its external data, and the folder of that data."""
    if isinstance(source, onnx.ModelProto):
        return source, None
    try:
        if isinstance(source, bytes):
            return onnx.load_model_from_string(source), None
        return onnx.load(str(source), load_external_data=False), Path(source).parent
    except DecodeError as error:
        raise ImportModelError(
            f"{name} is no ONNX model, or is truncated: {error}; export or download it again"
        ) from error
    except OSError as error:
        raise ImportModelError(f"{name} cannot be opened: {error.strerror or error}") from error
    except Exception as error:
        raise ImportModelError(f"{name} could not be read: {error}") from error


def _check(proto: ModelProto, source: Any, name: str) -> None:
    """onnx's own checker."""
    try:
        if isinstance(source, str | Path):
            onnx.checker.check_model(str(source))
        elif proto.ByteSize() < _PROTO_LIMIT:
            onnx.checker.check_model(proto)
    except (onnx.checker.ValidationError, ValueError, RuntimeError) as error:
        raise ImportModelError(f"{name} is not a valid ONNX model: {error}") from error
