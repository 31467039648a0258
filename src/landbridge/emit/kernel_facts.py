"""Collects the facts about kernels that an Executable retains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from landbridge.analysis.kernel_work import bytes_of, flops_of
from landbridge.executable.kernel_facts import call_key
from landbridge.executable.parts import KernelFacts
from landbridge.ir.graph_ops import CallOp
from landbridge.ir.kernel_attributes import schedule_of
from landbridge.ir.length_ops import reserved
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import node_name
from landbridge.ir.traversal import all_operations
from landbridge.passes.lower.shared_code import Variant
from landbridge.sizes.size import Extent


def kernel_facts(module: IRModule, lowered: ModuleOp, variants: Mapping[str, Variant]) -> dict[str, KernelFacts]:
    """Returns the facts of each PrimFunc of ``module`` by name, with the schedules that ``lowered`` has.

    Kernels that share code, which ``variants`` lists, have facts for each call.
    """
    schedules = {op.sym_name.data: schedule_of(op) for op in lowered.body.block.ops if isinstance(op, func.FuncOp)}
    schedules |= {name: (variant.schedule, variant.weighed) for name, variant in variants.items()}
    facts = {
        name: KernelFacts(_most(flops_of(prim)), _most(bytes_of(prim)), *schedules.get(name, ("", ())))
        for name, prim in module.prims().items()
    }
    found = {name: each for name, each in facts.items() if name not in variants}
    for call in all_operations(module.main) if variants else ():
        if isinstance(call, CallOp) and (variant := variants.get(call.callee_name)):
            found[call_key(variant.function, node_name(call))] = facts[call.callee_name]
    return found


def _most(work: Extent) -> int:
    """Returns ``work``, a number or a Size of the dimensions of inputs; where a length decides it, that of the
    capacity.
    """
    return cast(int, reserved(work))
