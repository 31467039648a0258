"""Iterated stages on a grid: one workgroup runs all of them, because an iteration reads results of the previous one.

On the cores of a CPU it is the one task of the CPU's own schedule. Elsewhere the work-items share the points of each
stage, and wait at a barrier after it.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Attribute, SSAValue

from landbridge.ir.stages import PrimView
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.grid.cpu_tasks import core_vector_unit
from landbridge.passes.lower.grid.launch import Launcher, WorkItem, barrier, power_of_two
from landbridge.passes.lower.grid.row_groups import MAX_SIZE, Row, RowNest
from landbridge.passes.lower.iterations import emit_iterations, emit_sections
from landbridge.passes.lower.nest import Nest, build_nests
from landbridge.passes.lower.simplify import simplify


def iterations_launch(launcher: Launcher, prim: PrimView, buffers: Mapping[SSAValue, SSAValue]) -> None:
    """Emit the one launch of a PrimFunc whose stages are iterated, if it computes anything."""
    if launcher.limits.core_vectors:
        machine = core_vector_unit(launcher.limits)

        def task(code: Code, group: SSAValue) -> int:
            return int(emit_iterations(code, prim, machine, dict(buffers), group, code.add(group, 1)).count)

        launcher.launch_counted(task)
        return
    sections = [(int(steps is not None), build_nests(view)) for steps, view in prim.sections()]
    rows = [_row(nest, iterations) for iterations, nests in sections for nest in nests if not nest.is_empty]
    if not rows:
        return
    widest = max(row.width for row in rows)
    size = power_of_two(min(widest, MAX_SIZE), launcher.limits.workgroup_size)

    def group(code: Code, item: WorkItem) -> None:
        trees: dict[Attribute, SSAValue] = {}
        memory = dict(buffers)

        def emit(nest: Nest, env: Mapping[int, Index]) -> None:
            Row(code, _row(nest, len(env)), size, item.thread, memory, dict(env), trees).emit()
            barrier(code)

        emit_sections(code, prim, memory, emit)

    launcher.launch(1, size, group)


def _row(nest: Nest, iterations: int) -> RowNest:
    return RowNest(simplify(nest, keep=iterations), tuple(range(iterations)))
