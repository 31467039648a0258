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
    """Returns the numpy dtype of ``name``; ml_dtypes is imported only for the types that numpy lacks."""
    dtype(name)
    if name in ("bfloat16",) or name.startswith("float8"):
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


def dtype_name(value: Any) -> str:
    """Returns the name of a numpy dtype, scalar type or name; raises InputError for a type that is not supported."""
    name = value if isinstance(value, str) else np.dtype(value).name
    return dtype(name).name


@cache
def from_dlpack_type(code: int, bits: int, lanes: int) -> str:
    """Returns the name of a DLPack data type; raises InputError for a type that is not supported."""
    for d in _DTYPES.values():
        if lanes == 1 and (d.dlpack_code, d.dlpack_bits) == (code, bits):
            return d.name
    raise InputError(f"DLPack type (code={code}, bits={bits}, lanes={lanes}) has no Landbridge dtype")
