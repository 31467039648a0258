"""LoraAdapter: weight values in a file, for runs that activate it; AdapterFormat: the content of such a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from landbridge.errors import ImportModelError
from landbridge.frontend.onnx.flatbuffer import FlatTable
from landbridge.onnxruntime.capi import onnxruntime_pybind11_state as failures
from landbridge.onnxruntime.element_types import numpy_element
from landbridge.onnxruntime.ort_value import OrtValue
from landbridge.records import record

_MARK = b"TORT"


@record(frozen=True)
class _Adapter:
    """The content of a file, by the tables of onnxruntime's ``adapter_schema.fbs``."""

    format_version: int
    adapter_version: int
    model_version: int
    parameters: dict[str, OrtValue]


class LoraAdapter:
    """Values, by name, for weights that the model lists as inputs; ``RunOptions.add_active_adapter`` takes it."""

    def __init__(self) -> None:
        self.parameters: dict[str, OrtValue] = {}

    def Load(self, file: str | os.PathLike[str]) -> None:  # noqa: N802  as onnxruntime calls it
        """Replaces the values by those in ``file``; raises InvalidArgument where it is no adapter or cannot be read."""
        self.parameters = _read(file).parameters


class AdapterFormat:
    """The content of an adapter's file. Landbridge reads such files; onnxruntime writes them."""

    def __init__(self, adapter: _Adapter | None = None) -> None:
        self._adapter = adapter or _Adapter(1, 0, 0, {})

    @staticmethod
    def read_adapter(file_path: str | os.PathLike[str]) -> AdapterFormat:
        """Returns the content of ``file_path``; raises InvalidArgument where it is no adapter."""
        return AdapterFormat(_read(file_path))

    def export_adapter(self, file_path: str | os.PathLike[str]) -> None:
        """Raises NotImplemented, as only onnxruntime writes adapters."""
        raise failures.NotImplemented(
            f"{file_path}: adapters are read here and not written; write it where onnxruntime is installed: "
            "onnxruntime.AdapterFormat().export_adapter, or its convert_npz_to_onnx_adapter.py"
        )

    def get_format_version(self) -> int:
        """Returns the version of the file format."""
        return self._adapter.format_version

    def get_adapter_version(self) -> int:
        """Returns the version that the adapter's author gave it."""
        return self._adapter.adapter_version

    def get_model_version(self) -> int:
        """Returns the version of the model that the adapter is for."""
        return self._adapter.model_version

    def get_parameters(self) -> dict[str, OrtValue]:
        """Returns the adapter's weight values by name, in a new dict; the OrtValues are not copied."""
        return dict(self._adapter.parameters)


def _read(file: str | os.PathLike[str]) -> _Adapter:
    try:
        content = Path(file).read_bytes()
        if content[4:8] != _MARK:
            raise ImportModelError("it is not an adapter of onnxruntime")
        table = FlatTable.root(memoryview(content))
        values = dict(map(_parameter, table.tables(3)))
        return _Adapter(table.number(0, "i"), table.number(1, "i"), table.number(2, "i"), values)
    except (OSError, ImportModelError, ValueError, KeyError) as error:
        raise failures.InvalidArgument(f"adapter {os.fspath(file)!r} cannot be read: {error}") from error


def _parameter(table: FlatTable) -> tuple[str, OrtValue]:
    dtype = numpy_element(table.number(2, "i"))
    array: np.ndarray[Any, Any] = np.frombuffer(table.data(3), dtype.newbyteorder("<"))
    return table.text(0), OrtValue(array.reshape(table.values(1)).astype(dtype, copy=False))
