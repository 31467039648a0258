"""Reads the model or program that a session is made from, and its description."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from landbridge.errors import ExecutableError
from landbridge.executable.executable import Executable
from landbridge.executable.file_reader import read_executable
from landbridge.executable.header import MAGIC
from landbridge.frontend.onnx.data_rules import DataRules
from landbridge.frontend.onnx.label_names import Labels
from landbridge.onnxruntime import model_file
from landbridge.onnxruntime.capi import onnxruntime_pybind11_state as failures
from landbridge.onnxruntime.file_facts import file_facts
from landbridge.onnxruntime.model_facts import ModelMetadata, NodeArg, argument_of, arguments, metadata
from landbridge.onnxruntime.options import SessionOptions
from landbridge.records import record

#: In the metadata of a program: what its model said of itself.
_FACTS = "onnxruntime.facts"


@record(frozen=True)
class ModelSource:
    """A ``model`` (a file, the bytes of one, or a program) with the facts of its file."""

    model: bytes | Path | Executable
    external: DataRules
    inputs: tuple[NodeArg, ...]
    overridable: tuple[NodeArg, ...]
    outputs: tuple[NodeArg, ...]
    metadata: ModelMetadata
    labels: tuple[Labels, ...]

    @property
    def has_open(self) -> bool:
        """Returns whether an input has an extent that is not a number."""
        return any(not isinstance(extent, int) for value in self.inputs for extent in value.shape)


def read_source(given: str | bytes | os.PathLike[str], options: SessionOptions) -> ModelSource:
    """Returns the source that a session is given; raises errors of onnxruntime, and those of ``model_file``."""
    model = given if isinstance(given, bytes) else Path(given)
    if _is_program(model):
        return _of_program(_program(model))
    changed, rules = model_file.with_options(model, options), model_file.external_data(model, options)
    facts = file_facts(model)
    if facts is not None:
        return ModelSource(changed, rules, facts.inputs, facts.overridable, facts.outputs, facts.metadata, ())
    # imported here, as they import onnx
    from landbridge.frontend.onnx.labels import has_names, labels_of
    from landbridge.frontend.onnx.output_types import type_outputs

    proto = model_file.read(model)
    type_outputs(proto)
    listed = {initializer.name for initializer in proto.graph.initializer}
    return ModelSource(
        changed,
        rules,
        tuple(arguments(value for value in proto.graph.input if value.name not in listed)),
        tuple(arguments(value for value in proto.graph.input if value.name in listed)),
        tuple(arguments(proto.graph.output)),
        metadata(proto),
        tuple(labels_of(proto)) if has_names(proto) else (),
    )


def with_facts(executable: Executable, source: ModelSource) -> Executable:
    """Returns ``executable`` of ``source`` with the model's description added, which ``read_source`` reads from its
    file.
    """
    facts = {
        "inputs": [[value.name, value.type, value.shape] for value in source.inputs],
        "outputs": [[value.name, value.type, value.shape] for value in source.outputs],
        "metadata": vars(source.metadata),
        "labels": [[each.output, each.names, each.are_maps] for each in source.labels],
    }
    return replace(executable, metadata={**executable.metadata, _FACTS: json.dumps(facts)})


def _is_program(model: bytes | Path) -> bool:
    if isinstance(model, bytes):
        return model.startswith(MAGIC)
    try:
        with model.open("rb") as opened:
            return opened.read(len(MAGIC)) == MAGIC
    except OSError:  # the reader of this file warns
        return False


def _program(model: bytes | Path) -> Executable:
    try:
        if isinstance(model, Path):
            return read_executable(model)
        descriptor = os.memfd_create("program")
        with os.fdopen(descriptor, "wb") as file:
            file.write(model)
            file.flush()
            return read_executable(Path(f"/proc/self/fd/{descriptor}"), mapped=False)
    except ExecutableError as error:
        raise failures.InvalidProtobuf(str(error)) from error


def _of_program(executable: Executable) -> ModelSource:
    facts: dict[str, Any] = json.loads(executable.metadata.get(_FACTS, "{}"))
    if facts:
        inputs, outputs = ([NodeArg(*value) for value in facts[what]] for what in ("inputs", "outputs"))
    else:
        inputs, outputs = ([argument_of(spec) for spec in s] for s in (executable.main.inputs, executable.main.outputs))
    return ModelSource(
        executable,
        DataRules(),
        tuple(inputs),
        (),
        tuple(outputs),
        ModelMetadata(**facts.get("metadata", {})),
        tuple(Labels(output, tuple(names), are_maps) for output, names, are_maps in facts.get("labels", ())),
    )
