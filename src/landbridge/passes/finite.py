"""Finite: constants for devices that compute with no infinities have the largest finite numbers in their place.

Those in kernels are replaced when code is generated, as lowering adds some.
"""

from __future__ import annotations

import numpy as np

from landbridge.ir.finite import largest_finite
from landbridge.ir.graph_ops import ConstantOp
from landbridge.ir.module import IRModule
from landbridge.ir.traversal import operations_of
from landbridge.ir.types import dtype_of, vdevice_of
from landbridge.passes.registry import register_pass
from landbridge.targets.arithmetic import arithmetic_of


@register_pass("finite")
def finite(module: IRModule) -> None:
    """Give each constant with infinities a finite copy for the devices that need it."""
    for op in operations_of(module.main, ConstantOp):
        target = module.target_of(vdevice_of(op.result.type).index.data)
        dtype = dtype_of(op.result.type)
        if arithmetic_of(target).infinities is not False or dtype not in ("float64", "float32", "float16", "bfloat16"):
            continue
        symbol, array = f"{op.symbol_name}.finite", module.constants[op.symbol_name]
        wide = array.astype(np.float64)
        if not np.isinf(wide).any():
            continue
        largest = largest_finite(dtype)
        module.constants[symbol] = np.clip(wide, -largest, largest).astype(array.dtype)
        replaced = ConstantOp(symbol, op.result.type)
        replaced.attributes.update({name: value for name, value in op.attributes.items() if name != "symbol"})
        block = op.parent
        assert block is not None
        block.insert_op_before(replaced, op)
        op.result.replace_all_uses_with(replaced.result)
        block.erase_op(op)
    used = {op.symbol_name for op in operations_of(module.main, ConstantOp)}
    for symbol in [name for name in module.constants if f"{name}.finite" in used and name not in used]:
        del module.constants[symbol]
