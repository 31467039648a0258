"""Kernels that ``sim:lazy`` loads as a module of format ``python``."""

from __future__ import annotations

from typing import Any

import numpy as np

Extents = tuple[int, int, int]
Bytes = np.ndarray[Any, Any]


def add_one(grid: Extents, block: Extents, data: Bytes, count: int) -> None:
    data[:count] += 1
