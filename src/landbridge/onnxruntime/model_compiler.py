"""ModelCompiler: compiles a model to a file that a session opens without compiling."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import IntFlag
from pathlib import Path

from landbridge.errors import OutputFileError
from landbridge.executable.executable import Executable, pieces_of_file
from landbridge.onnxruntime.capi import onnxruntime_pybind11_state as failures
from landbridge.onnxruntime.model_source import read_source, with_facts
from landbridge.onnxruntime.options import GraphOptimizationLevel, SessionOptions
from landbridge.onnxruntime.programs import Programs, as_onnxruntime


class OrtCompileApiFlags(IntFlag):
    """Conditions under which a ModelCompiler refuses to write."""

    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2


class ModelCompiler:
    """Compiles ``input_model_path_or_bytes`` for this host; the result is an ``.lbx`` program, whatever its file name.

    ``InferenceSession`` opens it, and so does ``landbridge.load``. It contains all weights, so options for their
    location raise NotImplemented.
    """

    def __init__(
        self,
        sess_options: SessionOptions,
        input_model_path_or_bytes: str | bytes | os.PathLike[str],
        embed_compiled_data_into_model: bool = False,
        external_initializers_file_path: str | os.PathLike[str] | None = None,
        external_initializers_size_threshold: int = 1024,
        flags: int = OrtCompileApiFlags.NONE,
        graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_DISABLE_ALL,
        get_initializer_location_func: Callable[..., object] | None = None,
    ) -> None:
        if not isinstance(input_model_path_or_bytes, str | bytes | os.PathLike):
            raise TypeError(f"Unable to load from type '{type(input_model_path_or_bytes)}'")
        if external_initializers_file_path or get_initializer_location_func is not None:
            raise failures.NotImplemented(
                "weights of a compiled program are in its file; leave external_initializers_file_path and "
                "get_initializer_location_func out"
            )
        self._options, self._model, self._flags = sess_options, input_model_path_or_bytes, flags

    def compile_to_file(self, output_model_path: str | os.PathLike[str] | None = None) -> None:
        """Writes the program to ``output_model_path``, by default beside the model as ``model_ctx.onnx``, as
        onnxruntime does. Raises InvalidArgument for a model in memory without a path, Fail where the file cannot be
        written.
        """
        if output_model_path is None:
            if isinstance(self._model, bytes):
                raise failures.InvalidArgument("a model in memory has no folder; give output_model_path")
            model = Path(self._model)
            output_model_path = model.with_name(f"{model.stem}_ctx.onnx")
        if self._flags & OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS and Path(output_model_path).exists():
            raise failures.Fail(f"{output_model_path} is there already, and ERROR_IF_OUTPUT_FILE_EXISTS is set")
        try:
            self._compiled().save(Path(output_model_path))
        except OutputFileError as error:
            raise failures.Fail(str(error)) from error

    def compile_to_bytes(self) -> bytes:
        """Returns the bytes of the program's file."""
        return b"".join(pieces_of_file(self._compiled()))

    def compile_to_stream(self, write_function: Callable[[bytes], None]) -> None:
        """Passes the bytes of the program's file to ``write_function``, piece by piece."""
        for piece in pieces_of_file(self._compiled()):
            write_function(bytes(piece))

    def _compiled(self) -> Executable:
        with as_onnxruntime():
            source = read_source(self._model, self._options)
        return with_facts(Programs(source, self._options).for_all_sizes(), source)
