"""Converts a feed to the array that an input of the model takes, or raises an error in onnxruntime's words."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from landbridge.array_type import Array
from landbridge.dtypes import numpy_dtype
from landbridge.onnxruntime.capi import onnxruntime_pybind11_state as failures
from landbridge.onnxruntime.element_types import spelled
from landbridge.onnxruntime.model_facts import NodeArg
from landbridge.onnxruntime.ort_value import OrtValue


def taken(wanted: NodeArg, value: Any) -> Array:
    """Returns ``value`` as an array that the model takes; raises InvalidArgument where it does not fit."""
    dtype = _dtype(wanted.type)
    array = value.numpy() if isinstance(value, OrtValue) else value
    if isinstance(array, list | tuple | int | float | bool):
        array = np.asarray(array, dtype)
    array = np.asarray(array, order="C")
    if array.dtype != dtype:
        raise failures.InvalidArgument(
            f"Unexpected input data type. Actual: ({spelled(array.dtype)}) , expected: ({wanted.type}) for input: "
            f"{wanted.name}"
        )
    if wanted.shape and array.ndim != len(wanted.shape):
        raise failures.InvalidArgument(
            f"Invalid rank for input: {wanted.name} Got: {array.ndim} Expected: {len(wanted.shape)} Please fix "
            "either the inputs/outputs or the model."
        )
    for axis, (got, expected) in enumerate(zip(array.shape, wanted.shape, strict=False)):
        if isinstance(expected, int) and got != expected:
            raise failures.InvalidArgument(
                f"Got invalid dimensions for input: {wanted.name} for the following indices\n index: {axis} "
                f"Got: {got} Expected: {expected}\n Please fix either the inputs/outputs or the model."
            )
    return array


@cache
def _dtype(spelled: str) -> np.dtype[Any]:
    """Returns the numpy dtype of ``"tensor(float)"`` and similar names."""
    plain = spelled.removeprefix("tensor(").removesuffix(")")
    return np.dtype(numpy_dtype({"float": "float32", "double": "float64"}.get(plain, plain)))
