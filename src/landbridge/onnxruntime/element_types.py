"""ONNX's element types by number: their names in onnxruntime, and their dtypes in numpy.

The package onnx has the same tables, and its import takes as long as reading a compiled program and running it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: By number, as TensorProto.DataType counts: onnxruntime's name, which is a part of ``tensor(float)``, and the dtype's
#: name in numpy or ml_dtypes.
_TYPES: tuple[tuple[str, str], ...] = (
    ("undefined", ""),
    ("float", "float32"),
    ("uint8", "uint8"),
    ("int8", "int8"),
    ("uint16", "uint16"),
    ("int16", "int16"),
    ("int32", "int32"),
    ("int64", "int64"),
    ("string", "object"),
    ("bool", "bool"),
    ("float16", "float16"),
    ("double", "float64"),
    ("uint32", "uint32"),
    ("uint64", "uint64"),
    ("complex64", "complex64"),
    ("complex128", "complex128"),
    ("bfloat16", "bfloat16"),
    ("float8e4m3fn", "float8_e4m3fn"),
    ("float8e4m3fnuz", "float8_e4m3fnuz"),
    ("float8e5m2", "float8_e5m2"),
    ("float8e5m2fnuz", "float8_e5m2fnuz"),
    ("uint4", "uint4"),
    ("int4", "int4"),
    ("float4e2m1", "float4_e2m1fn"),
    ("float8e8m0", "float8_e8m0fnu"),
    ("uint2", "uint2"),
    ("int2", "int2"),
    ("float6e2m3", "float6_e2m3fn"),
    ("float6e3m2", "float6_e3m2fn"),
)
_NUMBERS = {dtype: number for number, (_, dtype) in enumerate(_TYPES) if dtype}


def element_name(element: int) -> str:
    """Returns the name of an ONNX element type, ``"float"`` for 1; raises ValueError for a number without a type."""
    if not 0 <= element < len(_TYPES):
        raise ValueError(f"{element} is not an element type of ONNX; legal: 0 to {len(_TYPES) - 1}")
    return _TYPES[element][0]


def element_of(dtype: object) -> int:
    """Returns the ONNX element type of ``dtype``, a numpy dtype or its name; a number is returned as it is.

    Raises ValueError for a dtype that ONNX lacks, TypeError for an object that is no dtype.
    """
    if isinstance(dtype, int):
        return dtype
    known: np.dtype[Any] = np.dtype(dtype)  # type: ignore[call-overload]
    number = _NUMBERS.get("object" if known.kind == "U" else known.name)
    if number is None or not known.isnative:
        raise ValueError(f"{known!r} is not an element type of ONNX; legal: {', '.join(_NUMBERS)}")
    return number


def numpy_element(element: int) -> np.dtype[Any]:
    """Returns the numpy dtype of an ONNX element type; raises KeyError for a number without one."""
    if not 0 < element < len(_TYPES):
        raise KeyError(element)
    name = _TYPES[element][1]
    try:
        return np.dtype(name)
    except TypeError:  # imported here, as numpy has most of them
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found


def spelled(dtype: np.dtype[Any]) -> str:
    """Returns the type of a tensor of ``dtype`` as onnxruntime names it, such as ``"tensor(float)"`` for float32; for a
    dtype that ONNX lacks, numpy's name of the dtype alone.
    """
    try:
        return f"tensor({element_name(element_of(dtype))})"
    except (KeyError, ValueError, TypeError):
        return str(dtype)
