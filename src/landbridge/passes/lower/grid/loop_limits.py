"""Targets whose drivers end loops after a number of iterations, in silence: what stays below it, and what is refused.

A kernel that exceeds it whatever the sizes runs on a CPU. Where sizes decide, a guard of @main refuses the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from landbridge.analysis.loop_iterations import most_iterations
from landbridge.executable.parts import SizeGuard
from landbridge.ir.kernel_attributes import target_number
from landbridge.ir.main_attributes import guards, set_guards
from landbridge.ir.stages import view_prim
from landbridge.passes.lower.grid.schedule import lower_grid
from landbridge.sizes.size import Size, always_at_least, largest, least, never_below, product
from landbridge.targets import Target
from landbridge.targets.grid import GridLimits, grid_limits


def exceeds(prim: func.FuncOp, limits: GridLimits) -> str | None:
    """Returns why a target with ``limits`` runs ``prim`` at no size; None where it does at some."""
    most = limits.loop_iterations
    if most is None or _work(prim) <= most // 2:
        return None
    count = most_iterations(lower_grid(prim.clone(), limits))
    if count is None:
        return f"the iterations of its loops are not known, and the driver ends loops after {most}"
    if least(count) > most:
        return f"a work-item would make {least(count)} iterations of loops, and the driver ends loops after {most}"
    return None


def _work(prim: func.FuncOp) -> int:
    """Returns the most iterations of all loops of ``prim``, were they done by one work-item."""
    return sum(never_below(product(generic.extents)) for generic in view_prim(prim).generics())


def guard_loops(main: func.FuncOp, lowered: ModuleOp, targets: Sequence[Target]) -> None:
    """Add guards to ``main``: what its kernels may iterate at the sizes of a run, where their targets have a limit."""
    every = [grid_limits(target) for target in targets]
    if all(limits is None or limits.loop_iterations is None for limits in every):
        return
    created: list[SizeGuard] = []
    for function in lowered.body.block.ops:
        assert isinstance(function, func.FuncOp)
        limits = every[target_number(function)]
        if limits is None or (most := limits.loop_iterations) is None:
            continue
        count = most_iterations(function)
        if isinstance(count, Size) and not always_at_least(most, count):
            subject = f"the iterations of loops of kernel {function.sym_name.data!r}, at least {most},"
            created.append(SizeGuard(subject, cast(int, largest(count, most)), most))
    if created:
        set_guards(main, (*guards(main), *created))
