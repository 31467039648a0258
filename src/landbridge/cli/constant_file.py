"""Files of constants for a model that is given as IR: ``.npz``, ``.safetensors``, and ``.lbx`` of a program."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from landbridge.array_type import Array
from landbridge.cli.options import UsageError
from landbridge.dtypes import numpy_dtype
from landbridge.errors import InputError
from landbridge.executable.parts import parameter_constant

Arrays: TypeAlias = Mapping[str, Array]

OPTION = "--constants"
SUFFIXES = (".npz", ".safetensors", ".lbx")

#: The names of dtypes in files of safetensors (github.com/huggingface/safetensors, README.md).
_SAFETENSORS = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
}  # fmt: skip
#: The most bytes of a header of safetensors, as its own library has it.
_LARGEST_HEADER = 100_000_000


def read_constants(file: Path, model: Path) -> Arrays:
    """Returns the arrays of ``file`` that the IR text ``model`` names, by name.

    Raises UsageError for a file of another kind and where the IR names none of its arrays, InputError for one that is
    broken.
    """
    if file.suffix not in SUFFIXES:
        raise UsageError(f"{file} is none of {', '.join(SUFFIXES)}", parameter=OPTION)
    if model.suffix != ".mlir":
        raise UsageError(
            f"{model} has its own constants; {OPTION} is for IR text (.mlir), --constant fixes an input of a model",
            parameter=OPTION,
        )
    arrays = {".npz": _npz, ".safetensors": _safetensors, ".lbx": _program}[file.suffix](file)
    named = _named_in(model)
    found = {name: array for name, array in arrays.items() if not named.isdisjoint(_names_of(name))}
    if not found:
        some = ", ".join(sorted(arrays)[:8]) or "none"
        raise UsageError(f"{model} names no array of {file}, which has: {some}", parameter=OPTION)
    return found


def _named_in(model: Path) -> set[str]:
    """Returns the symbols and texts in the IR text ``model``."""
    text = model.read_text(encoding="utf-8", errors="replace")
    return {symbol or quoted for symbol, quoted in re.findall(r'@([\w$.-]+)|"((?:[^"\\]|\\.)*)"', text)}


def _names_of(name: str) -> tuple[str, ...]:
    """Returns the names by which IR may name the constant ``name``."""
    from landbridge.ir.module import symbol_name

    return name, symbol_name(name), name.removeprefix(parameter_constant(""))


def _npz(file: Path) -> Arrays:
    from zipfile import BadZipFile

    try:
        with np.load(file, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise InputError(f"{file} is one array; write an archive with np.savez({file.name!r}, name=array)")
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        raise InputError(f"{file} is no archive of plain arrays: {error}; write it with np.savez") from error


def _program(file: Path) -> Arrays:
    from landbridge.loader import load

    return load(file).constants


def _safetensors(file: Path) -> Arrays:
    size = file.stat().st_size
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        if not 2 <= length <= min(size - 8, _LARGEST_HEADER):
            raise InputError(f"{file} is no file of safetensors: its header would have {length} of its {size} bytes")
        try:
            header = json.loads(opened.read(length))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{file} is no file of safetensors: its header is no JSON: {error}") from error
    if not isinstance(header, dict):
        raise InputError(f"{file} is no file of safetensors: its header is a {type(header).__name__}")
    data = np.memmap(file, np.uint8, "r", 8 + length) if size > 8 + length else np.empty(0, np.uint8)
    return {name: _tensor(file, name, entry, data) for name, entry in header.items() if name != "__metadata__"}


def _tensor(file: Path, name: str, entry: Any, data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    try:
        shape, (begin, end) = tuple(entry["shape"]), entry["data_offsets"]
        element = numpy_dtype(_SAFETENSORS[entry["dtype"]])
        if not all(type(number) is int and number >= 0 for number in (*shape, begin, end)):
            raise ValueError("a number that is none")
        if not begin <= end <= data.nbytes or end - begin != math.prod(shape) * element.itemsize:
            raise ValueError(f"bytes {begin} to {end} of {data.nbytes} for {element}{list(shape)}")
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(f"{file}: tensor {name!r} is broken or of an unknown dtype: {error!r}") from error
    return np.frombuffer(data[begin:end].tobytes(), element).reshape(shape)
