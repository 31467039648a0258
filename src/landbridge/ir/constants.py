"""Fills in constants that IR text names but does not hold."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from xdsl.ir import Attribute

from landbridge.dtypes import numpy_dtype
from landbridge.ir.graph_ops import ConstantOp
from landbridge.ir.module import IRModule
from landbridge.ir.traversal import operations_of
from landbridge.ir.types import dtype_of, shape_of


def fill_missing_constants(module: IRModule) -> list[str]:
    """Give each constant that is missing from the table values seeded by its name, and return the names of those.

    A bug report is IR text without weights: with these values it runs, the same way for everyone. Values are normal
    with standard deviation 0.1, rounded for integers.
    """
    filled = []
    for op in operations_of(module.main, ConstantOp):
        symbol = op.symbol_name
        if symbol not in module.constants:
            module.constants[symbol] = seeded_values(symbol, op.result.type)
            filled.append(symbol)
    return filled


def seeded_values(name: str, ty: Attribute) -> np.ndarray[Any, Any]:
    """Returns a read-only array of the shape and dtype of ``ty``, with values seeded by ``name``."""
    values = np.random.default_rng(crc32(name.encode())).standard_normal(shape_of(ty)) * 0.1
    array = np.asarray(values).astype(numpy_dtype(dtype_of(ty)))
    array.flags.writeable = False
    return array
