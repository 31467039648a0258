"""Kernels with planted faults, which ``sim:lazy`` loads as a module of format ``python``."""

from __future__ import annotations

from typing import Any

import numpy as np

Extents = tuple[int, int, int]
Bytes = np.ndarray[Any, Any]


def fill(grid: Extents, block: Extents, data: Bytes, count: int) -> None:
    """Writes bytes ``0 <= b < count``."""
    data[:count] = 7


def fill_before(grid: Extents, block: Extents, data: Bytes, count: int) -> None:
    """Writes ``count`` bytes before the first one."""
    address = data.ctypes.data - count
    np.ctypeslib.as_array((__import__("ctypes").c_uint8 * count).from_address(address))[:] = 7
