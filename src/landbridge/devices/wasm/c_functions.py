"""Functions of the C library for WebAssembly modules, which have instructions for roots and rounding alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes.util import find_library
from functools import cache
from typing import Any

import wasmtime


def c_function(store: wasmtime.Store, name: str, kind: wasmtime.FuncType) -> wasmtime.Func:
    """Returns the C library's function ``name``, of doubles, or of floats where ``name`` ends with f.

    Raises KeyError where there is none.
    """
    return wasmtime.Func(store, kind, _loaded(name, len(kind.params)))


@cache
def _loaded(name: str, count: int) -> Callable[..., Any]:
    try:
        found = getattr(ctypes.CDLL(find_library("m")), name)
    except AttributeError as error:
        raise KeyError(name) from error
    number = ctypes.c_float if name.endswith("f") and name != "erf" else ctypes.c_double
    found.argtypes, found.restype = [number] * count, number
    return lambda *values: found(*values)
