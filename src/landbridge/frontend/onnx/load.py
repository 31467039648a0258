"""Loads and checks a model from a file, bytes or a ModelProto as an onnx_ir Model; inlines functions, and reads or maps
external data.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx.external_data_helper import uses_external_data
from onnx_ir.passes.common import InlinePass

from landbridge.errors import CompileError, ImportModelError, ModelWarning
from landbridge.executable.file_watch import FileWatch
from landbridge.frontend.onnx.data_rules import OF_THE_MODEL, DataRules
from landbridge.frontend.onnx.external_data import DataFiles, take_external_data
from landbridge.frontend.onnx.external_protos import check_external_tensors, without_external_data
from landbridge.frontend.onnx.labels import has_names, without_names
from landbridge.frontend.onnx.not_a_model import what_it_is
from landbridge.frontend.onnx.ort_file import is_ort_file, model_of_ort
from landbridge.frontend.onnx.repaired import repair, with_declared_types, with_dense_weights
from landbridge.frontend.onnx.unfolded_size import unfolded_nodes
from landbridge.frontend.onnx.weights_in_file import LightModel, light_model
from landbridge.ir.budget import MAX_NODES, Budget
from landbridge.ir.limits import check_file_bytes
from landbridge.reporting.warning_notes import warn
from landbridge.text.did_you_mean import file_like

if TYPE_CHECKING:
    from onnx import ModelProto

OLDEST_OPSET = 7
#: The first version of the format in which initializers need not be inputs.
_CONSTANTS_SINCE = 4
#: The most characters of a list in an error.
_SHOWN = 200
#: A ModelProto larger than this cannot be serialized, so it is checked by path only.
_PROTO_LIMIT = 1 << 31


class Loaded(NamedTuple):
    """A model, the files that it was read from, and those that its tensors are mapped from."""

    model: ir.Model
    sources: tuple[str, ...]
    files: tuple[FileWatch, ...]


def load_model(
    source: str | Path | bytes | ModelProto | ir.Model, max_nodes: int = MAX_NODES, rules: DataRules = OF_THE_MODEL
) -> Loaded:
    """Returns the model of ``source``, checked and with its functions inlined; ``rules`` limit the files of external
    data.

    Opsets under 7 are converted. An ``onnx_ir.Model``, which comes from another frontend, is changed in place. Raises
    ImportModelError if ``source`` is not a valid ONNX model or cannot be converted, and BudgetError if its functions
    unfold into more than ``max_nodes`` nodes. Warns with ModelWarning of faults that were repaired.
    """
    name = f"{source}" if isinstance(source, str | Path) else "the model"
    path = Path(source) if isinstance(source, str | Path) else None
    files = DataFiles(name, path, rules)
    if isinstance(source, ir.Model):
        return _inlined(source, path, max_nodes, name, files)
    proto, refused, weights = _parsed(source, name)
    if not proto.opset_import or not proto.HasField("graph"):
        is_parsed = isinstance(source, onnx.ModelProto)
        found = ("" if is_parsed else what_it_is(_content(source))) or "it has no graph or no opset; give an .onnx file"
        raise ImportModelError(f"{name} is no ONNX model: {found}")
    repaired, off = proto, list[str]()
    if refused is not None:
        repaired = _copy(proto) if proto is source else proto
        off = _repaired(repaired, name)
    repaired = _with_values(_with_constants(repaired))
    if refused is not None or repaired is not proto:
        refused = _refusal(with_declared_types(without_external_data(repaired)))
    if refused is not None:
        raise ImportModelError(f"{name} is not a valid ONNX model: {' '.join(str(refused).split())}") from refused
    if off:
        warn(f"{name} is not valid ONNX, and is taken as it is meant: {'; '.join(off)}", ModelWarning)
    proto = with_dense_weights(_of_a_known_opset(repaired, name))
    try:
        model = ir.serde.deserialize_model(proto)
        if weights is not None:
            weights.attach(model)
    except Exception as error:
        check_external_tensors(proto, name)
        raise ImportModelError(f"{name} could not be read: {error}") from error
    return _inlined(model, path, max_nodes, name, files)


def _repaired(proto: ModelProto, name: str) -> list[str]:
    """Repair ``proto`` in place; returns the faults."""
    try:
        return repair(proto)
    except ImportModelError as error:
        raise ImportModelError(f"{name} is not a valid ONNX model: {error}") from error


def _copy(proto: ModelProto) -> ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    return copy


def release(model: ir.Model) -> None:
    """Remove the weights from ``model``, which nobody reads again.

    The model is part of reference cycles, which are collected much later, and each tensor keeps the whole file in
    memory.
    """
    for graph in model.graphs():
        for value in graph.initializers.values():
            value.const_value = None
        for node in graph:
            for name in [a.name for a in node.attributes.values() if a.type == ir.AttributeType.TENSOR]:
                del node.attributes[name]


def _inlined(model: ir.Model, owned: Path | None, max_nodes: int, name: str, files: DataFiles) -> Loaded:
    """Returns ``model`` of the file ``owned`` with its functions inlined and its external data, in ``files``, read or
    mapped.
    """
    try:
        Budget(max_nodes).foresee(unfolded_nodes(model), name)
        _state_versions(model)
        InlinePass()(model)
        with files:
            external, watches = take_external_data(model, files)
    except CompileError:
        raise
    except Exception as error:
        raise ImportModelError(f"{name} could not be read: {error}") from error
    if files.links:
        warn(files.links_text(), ModelWarning)
    paths = [*([] if owned is None else [owned]), *map(Path, external)]
    return Loaded(model, tuple(str(path.absolute()) for path in paths), watches)


def _state_versions(model: ir.Model) -> None:
    """Set the opset of nodes in functions whose opsets differ from the model's; the domains are added to the graph.

    The default domain has a single name afterwards.
    """
    for imports in (model.opset_imports, *(function.opset_imports for function in model.functions.values())):
        alias = imports.pop("ai.onnx", None)
        if alias is not None:
            imports[""] = alias
    for function in model.functions.values():
        different = {d: v for d, v in function.opset_imports.items() if model.opset_imports.setdefault(d, v) != v}
        if not different:
            continue
        for node in ir.traversal.RecursiveGraphIterator(function):
            node.version = node.version or different.get(node.domain)
        function.opset_imports.update({domain: model.opset_imports[domain] for domain in different})


def _with_constants(proto: ModelProto) -> ModelProto:
    """Returns ``proto``; its format version is raised if it requires initializers to be inputs, and some are not.

    Programs that write newer models with an old version, or that remove the inputs, are common; other runtimes accept
    these models.
    """
    inputs = {value.name for value in proto.graph.input}
    if proto.ir_version >= _CONSTANTS_SINCE or all(tensor.name in inputs for tensor in proto.graph.initializer):
        return proto
    newer = onnx.ModelProto()
    newer.CopyFrom(proto)
    newer.ir_version = _CONSTANTS_SINCE
    return newer


def _with_values(proto: ModelProto) -> ModelProto:
    """Returns ``proto``; if an output names classes, returns a copy whose outputs are numbers, and warns with
    ModelWarning.
    """
    if not has_names(proto):
        return proto
    numbered = onnx.ModelProto()
    numbered.CopyFrom(proto)
    found = without_names(numbered)
    for labels in found:
        warn(str(labels), ModelWarning)
    return numbered if found else proto


def _of_a_known_opset(proto: ModelProto, name: str) -> ModelProto:
    """Returns ``proto``, converted if its opset is too old; raises ImportModelError if onnx cannot convert it.

    Warns with ModelWarning if the opset is newer than onnx knows, because its operators may have changed.
    """
    opset, newest = _opset(proto), onnx.defs.onnx_opset_version()
    if opset > newest:
        warn(
            f"{name} uses opset {opset}, and {newest} is the newest that onnx {onnx.__version__} defines: its "
            f"operators are taken as those of {newest}; update the package onnx where it knows {opset}",
            ModelWarning,
        )
    if opset >= OLDEST_OPSET:
        return proto
    try:
        if any(uses_external_data(tensor) for tensor in proto.graph.initializer):
            raise ImportModelError("its weights are in files of their own")
        return onnx.version_converter.convert_version(_with_slopes_of_channels(proto), OLDEST_OPSET)
    except Exception as error:  # errors of the converter itself, and of functions that it calls
        reason = " ".join(str(error).split())
        raise ImportModelError(
            f"{name} uses opset {opset}, and {OLDEST_OPSET} and newer are supported; onnx cannot convert it: {reason}; "
            "export it again for a newer opset"
        ) from error


def _opset(proto: ModelProto) -> int:
    versions = [entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")]
    return versions[-1] if versions else OLDEST_OPSET


def _with_slopes_of_channels(proto: ModelProto) -> ModelProto:
    """Returns ``proto`` with slopes of PRelu that broadcast; until opset 7, a slope of one axis was for the
    channels.
    """
    ranks = {
        v.name: len(v.type.tensor_type.shape.dim) for v in onnx.shape_inference.infer_shapes(proto).graph.value_info
    }
    ranks |= {v.name: len(v.type.tensor_type.shape.dim) for v in proto.graph.input}
    slopes = {t.name: t for t in proto.graph.initializer if len(t.dims) == 1 and t.dims[0] > 1}
    for node in proto.graph.node:
        if node.op_type == "PRelu" and node.input[1] in slopes and ranks.get(node.input[0], 0) > 2:
            name, more = node.input[1], [1] * (ranks[node.input[0]] - 2)
            slopes.pop(name).dims.extend(more)
            for value in proto.graph.input:
                if value.name == name:
                    value.type.tensor_type.shape.dim.extend(onnx.TensorShapeProto.Dimension(dim_value=e) for e in more)
    return proto


class _Parsed(NamedTuple):
    """A model without its external data, the error of onnx's checker, and the weights that are not in ``proto`` but in
    the file.
    """

    proto: ModelProto
    refused: Exception | None
    weights: LightModel | None = None


def _light(path: str) -> _Parsed | None:
    """Returns the model in a file without its large weights; None if all of it is needed, to report faults or to
    convert the opset.
    """
    light = light_model(path)
    if light is None or _refusal(light.checked) is not None:
        return None
    proto = onnx.load_model_from_string(light.content)
    return _Parsed(proto, None, light) if _opset(proto) >= OLDEST_OPSET else None


def _parsed(source: str | Path | bytes | ModelProto, name: str) -> _Parsed:
    if isinstance(source, onnx.ModelProto):
        return _Parsed(source, _refusal(source))
    try:
        if isinstance(source, bytes):
            check_file_bytes(len(source), name)
            proto = model_of_ort(source) if is_ort_file(source) else onnx.load_model_from_string(source)
            return _Parsed(proto, _refusal(proto))
        found = Path(source).stat()
        mode = found.st_mode
        if not name or stat.S_ISDIR(mode):
            inside = sorted(path.name for path in Path(source).glob("*.onnx")) if name else []
            holds = f"; it holds {', '.join(inside)[:_SHOWN]}" if inside else ""
            raise ImportModelError(f"{name!r} is a folder, and no model{holds}; name a file")
        if not stat.S_ISREG(mode):
            raise ImportModelError(f"{name} is not a regular file; read it and give its bytes")
        check_file_bytes(found.st_size, name)
        if is_ort_file(_beginning(source)):
            proto = model_of_ort(Path(source).read_bytes())
            return _Parsed(proto, _refusal(proto))
        if found.st_size and (light := _light(str(source))) is not None:
            return light
        refused = _refusal(str(source))  # the checker reads the file too; the content must not be in memory twice
        return _Parsed(onnx.load(str(source), load_external_data=False), refused)
    except CompileError:
        raise
    except DecodeError as error:
        seems = what_it_is(_content(source))
        why = f"{name} is no ONNX model: {seems}" if seems else f"{name} is no ONNX model, or is truncated: {error}"
        raise ImportModelError(why if seems else f"{why}; export or download it again") from error
    except FileNotFoundError as error:
        raise ImportModelError(f"there is no file {name!r}{file_like(Path(name))}") from error
    except OSError as error:
        raise ImportModelError(f"{name} cannot be opened: {error.strerror or error}") from error
    except Exception as error:
        raise ImportModelError(f"{name} could not be read: {error}") from error


def _beginning(path: str | Path) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(16)


def _content(source: str | Path | bytes | ModelProto) -> bytes:
    """Returns all bytes of ``source``: an archive, for example, has its list of contents at the end."""
    if isinstance(source, bytes):
        return source
    try:
        return b"" if isinstance(source, onnx.ModelProto) else Path(source).read_bytes()
    except OSError:
        return b""


def _refusal(model: str | bytes | ModelProto) -> Exception | None:
    """Returns the error of onnx's checker for a file or a model; None if it accepts it."""
    try:
        if isinstance(model, str | bytes) or model.ByteSize() < _PROTO_LIMIT:
            onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError, RuntimeError, DecodeError) as error:
        return error
    return None
