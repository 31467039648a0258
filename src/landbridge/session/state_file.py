"""Files of states: their filled steps, with the facts by which a state of another model or dtype is refused.

A file is a ``.npz`` of numpy: ``header`` is JSON text, and the bytes of each state's steps are an array of uint8 named
by its number.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from landbridge.dtypes import dtype as dtype_facts
from landbridge.dtypes import stored_dtype
from landbridge.errors import InputError, MissingFileError, UnreadableFileError
from landbridge.files.output_file import open_output
from landbridge.records import record

_FORMAT = 1
#: The most bytes that the header of one array in the file takes.
_LARGEST_HEADER = 4096
#: The most bytes of JSON: names and shapes of every state.
_LARGEST_FACTS = 16 << 20


@record(frozen=True)
class StatePart:
    """One recurrent state in a file: the ``name`` of its input, its ``dtype`` (a name such as ``float32``), and the
    ``shape`` of its steps that are filled.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]


def write_state(path: str | Path, model: str, length: int | None, parts: Sequence[StatePart], values: Any) -> None:
    """Write ``values``, an array for each of ``parts``, to the file ``path``: completely, or not at all.

    ``length`` is the number of filled steps (None where the states do not grow), ``model`` the name that ``read_state``
    compares. Raises OutputFileError, and InputError for what is no path.
    """
    path = _checked_path("save", path)
    facts = {
        "format": _FORMAT,
        "model": model,
        "length": length,
        "states": [[part.name, part.dtype, list(part.shape)] for part in parts],
    }
    with open_output(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        _write(archive, "header", np.frombuffer(json.dumps(facts).encode(), np.uint8))
        for number, value in enumerate(values):
            _write(archive, str(number), np.ascontiguousarray(value).reshape(-1).view(np.uint8))


def _checked_path(method: str, path: object) -> str:
    if isinstance(path, str | os.PathLike) and isinstance(found := os.fspath(path), str):
        return found
    raise InputError(f"{method} takes the path of a file, not {type(path).__name__}")


def _write(archive: zipfile.ZipFile, name: str, array: np.ndarray[Any, Any]) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(member, array, allow_pickle=False)


def read_state(path: str | Path, model: str) -> tuple[int | None, list[StatePart], list[np.ndarray[Any, Any]]]:
    """Returns length, parts and arrays of the file ``path``.

    Raises MissingFileError or UnreadableFileError where it cannot be read, InputError for what is no state, and for the
    state of another model than ``model``, and for what is no path. No more is read than the header declares.
    """
    path = _checked_path("load", path)
    try:
        with Path(path).open("rb") as file:
            return _read(file, path, model)
    except FileNotFoundError as error:
        raise MissingFileError(f"there is no file {path}; state.save(path) writes one") from error
    except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError, EOFError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} holds no state ({error}); state.save(path) writes one") from None
    except OSError as error:
        raise UnreadableFileError(f"{path} cannot be read: {error.strerror or error}; allow reading it") from error


def _read(
    file: IO[bytes], path: str | Path, model: str
) -> tuple[int | None, list[StatePart], list[np.ndarray[Any, Any]]]:
    with zipfile.ZipFile(file) as archive:
        facts = json.loads(_member(archive, "header", None).tobytes())
        match facts:
            case {"format": int(number), "model": str(found), "length": int() | None as length, "states": list(states)}:
                pass
            case _:
                raise ValueError("its header lacks a field")
        if number != _FORMAT:
            raise InputError(f"{path} is a state of format {number}; legal: {_FORMAT}; save it again")
        if found != model:
            raise InputError(f"{path} is a state of model {found!r}, this is {model!r}; run that model to continue it")
        parts = [_part(each) for each in states]
        if type(number) is not int or type(length) is bool or len({part.name for part in parts}) != len(parts):
            raise ValueError("its header names a state twice, or has no number where one belongs")
        arrays = []
        for each, part in enumerate(parts):
            nbytes = dtype_facts(part.dtype).itemsize
            for extent in part.shape:
                nbytes *= extent
            content = _member(archive, str(each), nbytes)
            arrays.append(content.view(stored_dtype(part.dtype)).reshape(part.shape))
    return length, parts, arrays


def _part(found: object) -> StatePart:
    match found:
        case [str(name), str(dtype), list(shape)]:
            extents = [extent for extent in shape if type(extent) is int and extent >= 0]
            if len(extents) == len(shape):
                return StatePart(name, dtype, tuple(extents))
    raise ValueError(f"{str(found)[:60]} describes no state")


def _member(archive: zipfile.ZipFile, name: str, nbytes: int | None) -> np.ndarray[Any, Any]:
    """Returns the bytes of member ``name``, which must be ``nbytes``; None allows those of a header."""
    info = archive.getinfo(f"{name}.npy")
    least, most = (0, _LARGEST_FACTS) if nbytes is None else (nbytes, nbytes + _LARGEST_HEADER)
    if info.compress_type != zipfile.ZIP_STORED or not least <= info.file_size <= most:
        raise ValueError(f"part {name} has {info.file_size} bytes")
    with archive.open(info) as member:
        found: np.ndarray[Any, Any] = np.lib.format.read_array(member, allow_pickle=False)
    if found.dtype != np.uint8 or found.ndim != 1 or (nbytes is not None and found.size != nbytes):
        raise ValueError(f"part {name} is {found.dtype}{list(found.shape)}")
    return found
