"""Split reductions: for long reductions of few points, several workgroups reduce parts and a second launch combines
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.combiners import combiner, fold, identity
from landbridge.passes.lower.grid.cost import DIVIDED_REDUCTIONS, WORKGROUPS
from landbridge.passes.lower.grid.launch import Launcher, WorkItem, power_of_two
from landbridge.passes.lower.grid.row_groups import Row, RowNest
from landbridge.sizes.size import Extent, ceildiv, expected_size, product
from landbridge.targets.grid import GridLimits


def parts_of(row: RowNest, points: Extent, limits: GridLimits) -> int:
    """Returns into how many parts the reductions of ``points`` are split to occupy a device's cores; 1 is no split."""
    size = power_of_two(WORKGROUPS.largest_size, limits.workgroup_size)
    wanted = DIVIDED_REDUCTIONS.items_of_a_core * limits.cores // (max(expected_size(points), 1) * size)
    return max(1, min(wanted, expected_size(row.length) // (DIVIDED_REDUCTIONS.iterations * size)))


def divided_row_launch(launcher: Launcher, row: RowNest, parts: int, buffers: Mapping[SSAValue, SSAValue]) -> None:
    """Launch all points, whose loops are all bound, each reduced in ``parts`` parts."""
    extents = [row.nest.dims[d].extent for d in row.bound]
    points, main = product(extents), row.nest.reduction
    assert main is not None
    element, combine = main.writes[0].element, combiner(main)
    assert combine is not None
    size = power_of_two(WORKGROUPS.largest_size, launcher.limits.workgroup_size)
    span = ceildiv(row.length, parts)
    partials = launcher.scratch(element, points * parts)

    def emitted(code: Code, thread: SSAValue, point: Index, width: int) -> Row:
        env = dict(zip(row.bound, code.unflatten(point, extents), strict=True))
        return Row(code, row, width, thread, buffers, env, {})

    def reduce(code: Code, item: WorkItem) -> None:
        point, part = code.unflatten(item.group, [points, parts])
        one = emitted(code, item.thread, point, size)
        first = code.mul(part, span)
        last = code.minimum(code.add(first, span), row.length)
        one.together(main, one.partial(main, first, last, span), lambda value: code.store(value, partials, item.group))

    launcher.launch(points * parts, size, reduce)
    few = power_of_two(min(parts, WORKGROUPS.largest_size), launcher.limits.workgroup_size)

    def combine_parts(code: Code, item: WorkItem) -> None:
        begin = code.mul(item.group, parts)
        start = code.constant(identity(combine, element), element)

        def iteration(part: SSAValue, carried: list[SSAValue]) -> Sequence[SSAValue]:
            return [fold(code, main, carried[0], code.load(partials, code.add(begin, part), element))]

        (value,) = code.loop(item.thread, parts, few, [start], iteration)
        one = emitted(code, item.thread, item.group, few)
        one.together(main, value, lambda whole: one.finish(main, whole))

    launcher.launch(points, few, combine_parts)
