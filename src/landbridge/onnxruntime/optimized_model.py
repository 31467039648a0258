"""Writes the model of a session to a file: simplified ONNX, Landbridge's IR, or the program."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from landbridge.errors import OutputFileError
from landbridge.files.output_file import open_output, write_text
from landbridge.onnxruntime import model_file
from landbridge.onnxruntime.capi import onnxruntime_pybind11_state as failures
from landbridge.onnxruntime.model_source import ModelSource, with_facts
from landbridge.onnxruntime.programs import Programs

#: The pass that turns tensors into buffers: IR before it is the optimized graph.
_BUFFERS = "bufferize"


def write_optimized(path: Path, source: ModelSource, programs: Programs) -> None:
    """Writes the model of ``source`` to ``path``: as ``.lbx`` program or ``.mlir`` IR by its suffix, else as ONNX.

    Raises Fail where the file cannot be written, and NotImplemented for ``.ort`` and for programs as ONNX.
    """
    try:
        if path.suffix == ".lbx":
            with_facts(programs.for_all_sizes(), source).save(path)
        elif path.suffix == ".mlir":
            write_text(path, _graph_ir(programs))
        elif path.suffix == ".ort" or not isinstance(source.model, bytes | Path):
            raise failures.NotImplemented(
                f"optimized_model_filepath={str(path)!r} of this model is not written; legal: .lbx, the compiled "
                "program, and of an ONNX model .onnx, the model, or .mlir, Landbridge's IR"
            )
        else:
            content = _onnx(source.model, source)
            with open_output(path) as file:
                file.write(content)
    except OutputFileError as error:
        raise failures.Fail(f"optimized_model_filepath: {error}") from error


def _graph_ir(programs: Programs) -> str:
    """Returns the IR of the whole graph after its passes, which ``landbridge.compile`` takes."""
    with TemporaryDirectory() as folder:
        programs.executable(dump=Path(folder))
        stages = sorted(Path(folder).glob("[0-9]*.mlir"))
        last = next(number for number, stage in enumerate(stages) if stage.stem.endswith(_BUFFERS)) - 1
        return stages[last].read_text()


def _onnx(model: bytes | Path, source: ModelSource) -> bytes:
    """Returns the model without functions, identities, duplicate nodes and nodes that no output needs."""
    import onnx_ir as ir
    from onnx_ir.passes import common

    proto = model_file.filled(model, source.external)
    graph = ir.serde.deserialize_model(proto)
    for each in (
        common.InlinePass(),
        common.IdentityEliminationPass(),
        common.CommonSubexpressionEliminationPass(),
        common.DeduplicateInitializersPass(),
        common.RemoveUnusedNodesPass(),
    ):
        graph = each(graph).model
    try:
        return bytes(ir.serde.serialize_model(graph).SerializeToString())
    except ValueError as error:  # more than 2 GiB
        raise failures.Fail(f"optimized_model_filepath: {error}; write it as .lbx") from error
