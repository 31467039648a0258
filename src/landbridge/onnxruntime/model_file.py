"""Reads the model of a session from its file or bytes, and applies options that change it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from landbridge.errors import InputError
from landbridge.frontend.onnx.data_rules import DataRules, data_rules
from landbridge.onnxruntime.capi import onnxruntime_pybind11_state as failures
from landbridge.onnxruntime.options import SessionOptions
from landbridge.onnxruntime.ort_value import OrtValue

if TYPE_CHECKING:
    import onnx

#: Entries of the session: the folder of external data where the model is bytes, as onnxruntime calls it, and whether
#: links to it may lead out of that folder.
_FOLDER, _LINKS = "session.model_external_initializers_file_folder_path", "landbridge.allow_links"


def read(model: bytes | Path) -> onnx.ModelProto:
    """Returns the model without its external data; raises NoSuchFile or InvalidProtobuf."""
    import onnx  # imported where it is needed: its import takes longer than reading a program from the cache

    from landbridge.frontend.onnx.ort_file import is_ort_file, model_of_ort

    name = str(model) if isinstance(model, Path) else "bytes"
    try:
        if isinstance(model, Path) and not is_ort_file(_beginning(model)):
            return onnx.load(model, load_external_data=False)
        content = model if isinstance(model, bytes) else model.read_bytes()
        return model_of_ort(content) if is_ort_file(content) else onnx.load_model_from_string(content)
    except FileNotFoundError as error:
        raise failures.NoSuchFile(f"Load model from {name} failed: File doesn't exist") from error
    except Exception as error:  # protobuf has several exceptions, and no base class of its own
        raise failures.InvalidProtobuf(f"Load model from {name} failed: Protobuf parsing failed: {error}") from error


def external_data(model: bytes | Path, options: SessionOptions) -> DataRules:
    """Returns where external data of ``model`` may be, as entries of ``options`` say; raises InvalidArgument."""
    folder = options.config_entry(_FOLDER) if isinstance(model, bytes) else ""
    try:
        return data_rules(folder or None, options.config_entry(_LINKS) == "1")
    except InputError as error:
        raise failures.InvalidArgument(f"{_FOLDER}: {error}") from error


def with_options(model: bytes | Path, options: SessionOptions) -> bytes | Path:
    """Returns ``model`` with the initializers and denoted dimensions of ``options``; itself where they have none.

    Raises InvalidArgument for an initializer that the model lacks or that has another shape or dtype, and
    ImportModelError where its external data may not be read.
    """
    if not options.initializers and not options.denoted_dimensions:
        return model
    changed = read(model)
    _replace(changed.graph, options.initializers)
    _fill(changed, model, options)
    for value in changed.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.denotation in options.denoted_dimensions and not dim.HasField("dim_value"):
                dim.dim_value = options.denoted_dimensions[dim.denotation]
    return bytes(changed.SerializeToString())


def with_inputs(model: bytes | Path, names: Collection[str], options: SessionOptions) -> bytes:
    """Returns ``model`` in which the initializers ``names``, which are listed as inputs, are inputs only."""
    changed = read(model)
    _fill(changed, model, options)
    retained = [initializer for initializer in changed.graph.initializer if initializer.name not in names]
    del changed.graph.initializer[:]
    changed.graph.initializer.extend(retained)
    return bytes(changed.SerializeToString())


def filled(model: bytes | Path, rules: DataRules) -> onnx.ModelProto:
    """Returns ``model`` with its external data included, where ``rules`` allow it; otherwise raises
    ImportModelError.
    """
    proto = read(model)
    _fill_by(proto, model, rules)
    return proto


def _beginning(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(16)


def _fill(proto: onnx.ModelProto, model: bytes | Path, options: SessionOptions) -> None:
    """Reads the external data of ``model`` into ``proto``, which was parsed from it."""
    _fill_by(proto, model, external_data(model, options))


def _fill_by(proto: onnx.ModelProto, model: bytes | Path, rules: DataRules) -> None:
    # imported here, as it imports the compiler's packages
    from landbridge.frontend.onnx.external_protos import fill_external_data

    fill_external_data(proto, model if isinstance(model, Path) else None, rules)


def _replace(graph: onnx.GraphProto, values: Mapping[str, OrtValue]) -> None:
    import onnx

    given = {initializer.name: initializer for initializer in graph.initializer}
    for name, value in values.items():
        if name not in given:
            raise failures.InvalidArgument(f"the model has no initializer {name!r}; it has {_some(given)}")
        array: np.ndarray[Any, Any] = value.numpy()
        tensor = onnx.numpy_helper.from_array(array, name)
        declared = (given[name].data_type, list(given[name].dims))
        if (tensor.data_type, list(tensor.dims)) != declared:
            raise failures.InvalidArgument(
                f"initializer {name!r} is {value.data_type()}{list(array.shape)}; the model's is of element "
                f"{onnx.TensorProto.DataType.Name(declared[0])} and shape {declared[1]}"
            )
        given[name].CopyFrom(tensor)


def _some(names: Collection[str]) -> str:
    few = sorted(names)[:8]
    return ", ".join(few) + (f" and {len(names) - len(few)} more" if len(names) > len(few) else "")
