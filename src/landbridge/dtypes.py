"""Element types by name, and their numpy and DLPack forms.

The names are numpy's (``float32``, ``bool``, ...) and ml_dtypes' (``bfloat16``, ``float8_e4m3fn``, ...).
DLPack codes are those of ``DLDataTypeCode`` in dlpack.h 1.1.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from landbridge.errors import InputError
from landbridge.records import record


@record(frozen=True)
class DType:
    """One element type: its name, its width in bytes and its DLPack ``(code, bits)``."""

    name: str
    itemsize: int
    dlpack_code: int
    dlpack_bits: int


_DTYPES = {
    d.name: d
    for d in [
        DType("bool", 1, 6, 8),
        *(DType(f"int{b}", b // 8, 0, b) for b in (8, 16, 32, 64)),
        *(DType(f"uint{b}", b // 8, 1, b) for b in (8, 16, 32, 64)),
        *(DType(f"float{b}", b // 8, 2, b) for b in (16, 32, 64)),
        DType("bfloat16", 2, 4, 16),
        DType("float8_e4m3fn", 1, 10, 8),
        DType("float8_e4m3fnuz", 1, 11, 8),
        DType("float8_e5m2", 1, 12, 8),
        DType("float8_e5m2fnuz", 1, 13, 8),
    ]
}


def dtype(name: str) -> DType:
    """Returns the DType called ``name``; raises InputError that lists the legal names."""
    try:
        return _DTYPES[name]
    except KeyError:
        raise InputError(f"unknown dtype {name!r}; legal: {', '.join(sorted(_DTYPES))}") from None


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """Returns the numpy dtype of ``name``; ml_dtypes is imported only for the types that numpy lacks.

    Raises InputError for one of those where ml_dtypes does not import.
    """
    dtype(name)
    if _is_extended(name):
        try:
            import ml_dtypes
        except ImportError as error:
            raise InputError(
                f"numpy has no {name}; ml-dtypes has, and does not import ({error}); install it with: "
                "pip install ml-dtypes"
            ) from error
        extended: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return extended
    return np.dtype(name)


def has_numpy_dtype(name: str) -> bool:
    """Returns whether numpy, or ml_dtypes where it imports, computes with elements of ``name``."""
    try:
        numpy_dtype(name)
    except InputError:
        return False
    return True


@cache
def stored_dtype(name: str) -> np.dtype[Any]:
    """Returns the numpy dtype of arrays that hold elements of ``name``: where ml_dtypes does not import, that of their
    bits for the types that numpy lacks, a structure whose one field has the type's name (``[("bfloat16", "<u2")]``).

    Programs with such elements then load and run, and what would compute with them in numpy does not.
    """
    return numpy_dtype(name) if has_numpy_dtype(dtype(name).name) else np.dtype([(name, f"<u{dtype(name).itemsize}")])


def _is_extended(name: str) -> bool:
    """Returns whether numpy itself lacks the dtype called ``name``."""
    return name == "bfloat16" or name.startswith("float8")


def dtype_name(value: Any) -> str:
    """Returns the name of a numpy dtype, scalar type or name, and that of the bits of one (``stored_dtype``); raises
    InputError for a type that is not supported.
    """
    if isinstance(value, str):
        return dtype(value).name
    return _name_of(np.dtype(value))


@cache
def _name_of(found: np.dtype[Any]) -> str:
    return _name_of_bits(found) if found.names else dtype(found.name).name


def _name_of_bits(structure: np.dtype[Any]) -> str:
    """Returns the type whose bits ``structure`` is; raises InputError where it is another structure."""
    for name, known in _DTYPES.items():
        if _is_extended(name) and structure == np.dtype([(name, f"<u{known.itemsize}")]):
            return name
    raise InputError(f"dtype {structure} is no element type; legal: {', '.join(sorted(_DTYPES))}")


@cache
def from_dlpack_type(code: int, bits: int, lanes: int) -> str:
    """Returns the name of a DLPack data type; raises InputError for a type that is not supported."""
    for d in _DTYPES.values():
        if lanes == 1 and (d.dlpack_code, d.dlpack_bits) == (code, bits):
            return d.name
    raise InputError(f"DLPack type (code={code}, bits={bits}, lanes={lanes}) has no Landbridge dtype")
