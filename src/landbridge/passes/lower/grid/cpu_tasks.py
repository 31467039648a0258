"""Grids on a CPU's cores: a workgroup is one work-item that runs a task, with the vectors of the core."""

from __future__ import annotations

from xdsl.ir import SSAValue

from landbridge.ir.stages import PrimView
from landbridge.passes.lower.code import Code
from landbridge.passes.lower.grid.launch import Launcher
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.schedule import VectorUnit
from landbridge.passes.lower.tasks import emit_tasks
from landbridge.sizes.size import Extent
from landbridge.targets.grid import GridLimits

#: The longest vector of OpenCL C (version 3.0 specification, section 6.3.2).
MAX_LANES = 16


def core_vector_unit(limits: GridLimits) -> VectorUnit:
    """Returns the vector unit of a core, as schedules need it."""
    return VectorUnit(limits.vector_bits // 8, limits.vector_registers, MAX_LANES, masks=False)


def task_launch(launcher: Launcher, prim: PrimView, nests: list[Nest], buffers: dict[SSAValue, SSAValue]) -> None:
    """Emit one launch of all tasks of ``nests``, as for a CPU."""
    machine = core_vector_unit(launcher.limits)

    def body(code: Code, group: SSAValue) -> Extent:
        return emit_tasks(code, prim, nests, machine, dict(buffers), group, code.add(group, 1)).count

    launcher.launch_counted(body)
