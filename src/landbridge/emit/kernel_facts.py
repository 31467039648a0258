"""What a compile knows of its kernels, as the data that an Executable keeps of them."""

from __future__ import annotations

from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from landbridge.analysis.kernel_work import bytes_of, flops_of
from landbridge.executable.parts import KernelFacts
from landbridge.ir.attributes import schedule_of
from landbridge.ir.module import IRModule


def kernel_facts(module: IRModule, lowered: ModuleOp) -> dict[str, KernelFacts]:
    """The facts of each PrimFunc of ``module``, whose schedules ``lowered`` states, by name."""
    schedules = {op.sym_name.data: schedule_of(op) for op in lowered.body.block.ops if isinstance(op, func.FuncOp)}
    return {
        name: KernelFacts(cast(int, flops_of(prim)), cast(int, bytes_of(prim)), *schedules.get(name, ("", ())))
        for name, prim in module.prims().items()
    }
