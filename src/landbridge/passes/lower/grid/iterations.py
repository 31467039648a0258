"""Iterated stages on a grid: one workgroup runs all of them, because an iteration reads results of the previous one.

On the cores of a CPU it is the one task of the CPU's own schedule. Elsewhere the work-items share the points of each
stage, and wait at a barrier after it. Iterations that update columns of their own (``update_columns.py``) are shared by
all workgroups.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Attribute, SSAValue

from landbridge.ir.stages import PrimView
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.grid.cost import WORKGROUPS
from landbridge.passes.lower.grid.cpu_tasks import core_vector_unit
from landbridge.passes.lower.grid.launch import Launcher, WorkItem, barrier, power_of_two
from landbridge.passes.lower.grid.row_groups import Row, RowNest
from landbridge.passes.lower.grid.separate_rows import separate_rows
from landbridge.passes.lower.grid.update_columns import column_launch
from landbridge.passes.lower.iterations import emit_iterations, emit_iterations_of, emit_sections
from landbridge.passes.lower.nest import Nest, build_nests
from landbridge.passes.lower.simplify import simplify
from landbridge.sizes.size import Extent, expected_size


def iterations_launch(launcher: Launcher, prim: PrimView, buffers: Mapping[SSAValue, SSAValue]) -> None:
    """Emit the one launch of a PrimFunc whose stages are iterated, if it computes anything: a workgroup for each row,
    where rows are independent, else one.
    """
    rows = separate_rows(prim)
    if launcher.limits.core_vectors:
        machine = core_vector_unit(launcher.limits)

        def task(code: Code, group: SSAValue) -> Extent:
            if rows is not None:
                emit_iterations_of(code, prim, machine, dict(buffers), group)
                return rows
            return emit_iterations(code, prim, machine, dict(buffers), group, code.add(group, 1)).count

        launcher.launch_counted(task)
        return
    if column_launch(launcher, prim, buffers):
        return
    bound = int(rows is not None)
    sections = [(int(steps is not None), build_nests(view)) for steps, view in prim.sections()]
    every = [_row(nest, bound + iterations) for iterations, nests in sections for nest in nests if not nest.is_empty]
    if not every:
        return
    widest = max(expected_size(row.width) for row in every)
    size = power_of_two(min(widest, WORKGROUPS.largest_size), launcher.limits.workgroup_size)

    def group(code: Code, item: WorkItem) -> None:
        trees: dict[Attribute, SSAValue] = {}
        memory = dict(buffers)

        def emit(nest: Nest, env: Mapping[int, Index]) -> None:
            if rows is not None:
                env = {**env, len(env): item.group}
            Row(code, _row(nest, len(env)), size, item.thread, memory, dict(env), trees).emit()
            barrier(code)

        emit_sections(code, prim, memory, emit)

    launcher.launch(1 if rows is None else rows, size, group)


def _row(nest: Nest, bound: int) -> RowNest:
    return RowNest(simplify(nest, keep=bound), tuple(range(bound)))
