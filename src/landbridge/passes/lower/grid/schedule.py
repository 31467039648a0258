"""Chooses the launches of a PrimFunc: each nest of loops gets the schedule that suits it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, MemRefType
from xdsl.ir import Block, Region, SSAValue

from landbridge.ir.kernel_attributes import keep_marks, set_sizes, set_task_count
from landbridge.ir.length_ops import lengths_in
from landbridge.ir.stages import PrimView, view_prim
from landbridge.ir.types import element_count, shape_of
from landbridge.passes.lower.code import Code
from landbridge.passes.lower.combiners import sums_up
from landbridge.passes.lower.extents_operand import EXTENTS_TYPE, open_extents, set_word_count
from landbridge.passes.lower.grid.contraction import contraction_launch
from landbridge.passes.lower.grid.cost import WORKGROUP_ROWS
from landbridge.passes.lower.grid.cpu_tasks import task_launch
from landbridge.passes.lower.grid.divided_rows import divided_row_launch, parts_of
from landbridge.passes.lower.grid.iterations import iterations_launch
from landbridge.passes.lower.grid.launch import Launcher
from landbridge.passes.lower.grid.pixels import make_image, pixel_launch, rows_for_images, written_images
from landbridge.passes.lower.grid.points import point_launch
from landbridge.passes.lower.grid.row_groups import RowNest, local_temporaries, prefix_rows, row_launch
from landbridge.passes.lower.grid.tiles import choose_tiles, element_width, find_contraction
from landbridge.passes.lower.image_memory import grid_type, is_image
from landbridge.passes.lower.nest import Nest, build_nests, used_buffers
from landbridge.passes.lower.prefix import shared_prefix, task_prefix
from landbridge.passes.lower.scan import scan_nest
from landbridge.passes.lower.scratch import fits_stack
from landbridge.passes.lower.serial import serial
from landbridge.passes.lower.simplify import simplify
from landbridge.sizes.size import expected_size, product
from landbridge.targets.grid import GridLimits


def lower_grid(function: func.FuncOp, limits: GridLimits, by_points: bool = False) -> func.FuncOp:
    """Returns a PrimFunc lowered to launches. Its attribute ``lb.tasks`` is 1, or 0 if nothing is computed.

    ``by_points``: each nest has a work-item for each point, whose indices are the simplest.
    """
    prim = view_prim(function)
    arguments = list(function.body.block.args)
    sizes = open_extents(function)
    block = Block(arg_types=[*(grid_type(a) for a in arguments), *([EXTENTS_TYPE] if sizes else [])])
    extents = block.args[-1] if sizes else None
    buffers: dict[SSAValue, SSAValue] = dict(zip(arguments, block.args, strict=False))
    code = Code(block, extents, lengths={name: buffers[value] for name, value in lengths_in(function).items()})
    launcher = Launcher(code, limits, extents)
    fold = scan_nest(prim)
    if fold is not None and not fold.is_empty:
        if launcher.limits.core_vectors:
            task_launch(launcher, prim, [fold], buffers)
        else:
            point_launch(launcher, simplify(fold), buffers)
    elif prim.is_iterated:
        iterations_launch(launcher, prim, buffers)
    else:
        nests = [nest for nest in build_nests(prim) if not nest.is_empty]
        images = rows_for_images(launcher, nests, buffers)
        if by_points:
            _scratch(launcher, prim.temporaries, nests, buffers)
            for nest in nests:
                point_launch(launcher, simplify(nest), buffers)
        else:
            _launches(launcher, prim, nests, buffers)
        for rows, image in images:
            make_image(launcher, rows, image)
    block.add_op(func.ReturnOp())
    if extents is not None and not code.words:
        code.value(sizes[0])  # a Call has at least one word where its function takes any
    code.finish()
    if extents is not None:
        set_word_count(extents, code.words)
    lowered = func.FuncOp(function.sym_name.data, FunctionType.from_lists(list(block.arg_types), []), Region(block))
    set_task_count(lowered, min(launcher.launches, 1))
    if extents is not None:
        set_sizes(lowered, list(code.words))
    keep_marks(function, lowered)
    return lowered


def _launches(launcher: Launcher, prim: PrimView, nests: list[Nest], buffers: dict[SSAValue, SSAValue]) -> None:
    length = shared_prefix(nests) if len(nests) > 1 else 0
    # Images have pixels, not vectors of a core.
    on_vectors = launcher.limits.core_vectors and not any(is_image(b.type) for b in used_buffers(nests))
    written = any(written_images(nest, buffers) for nest in nests)
    if on_vectors:
        if len(nests) == 1 or (length and fits_stack(prim, nests, task_prefix(nests))):
            task_launch(launcher, prim, nests, buffers)
            return
    elif length and not written and _row_by_row(launcher, prim, nests, length, buffers):
        return
    # Launches run one after the other: their intermediate results are scratch.
    _scratch(launcher, prim.temporaries, nests, buffers)
    for nest in nests:
        if on_vectors:
            task_launch(launcher, prim, [nest], buffers)
        elif written_images(nest, buffers):
            pixel_launch(launcher, nest, buffers)
        else:
            _nest_launch(launcher, simplify(nest), buffers)


def _row_by_row(
    launcher: Launcher, prim: PrimView, nests: list[Nest], length: int, buffers: dict[SSAValue, SSAValue]
) -> bool:
    """Launch a workgroup for each row; returns False if rows are too short or too few for that."""
    count = product(nests[0].dims[i].extent for i in range(length))
    used = used_buffers(nests)
    local = local_temporaries([t for t in prim.temporaries if t in used], count, launcher.limits.local_bytes)
    rows = prefix_rows(nests, length, set(local), _alone(launcher.limits, Fraction(1, 2)))
    width, few = max(expected_size(r.width) for r in rows), expected_size(count)
    work = sum(expected_size(r.points * r.length) for r in rows)
    are_narrow, are_few = width < WORKGROUP_ROWS.width, few < WORKGROUP_ROWS.few_rows
    if (are_narrow and few > WORKGROUP_ROWS.few_rows) or (are_few and work > WORKGROUP_ROWS.operations):
        return False
    _scratch(launcher, [t for t in prim.temporaries if t not in local], nests, buffers)
    row_launch(launcher, rows, local, buffers)
    return True


def _alone(limits: GridLimits, part: Fraction) -> int | None:
    """Returns the most iterations of one reduction that a work-item may make alone: ``part`` of all, as others are
    those of other stages, and of loops around blocks of the reduction.
    """
    return None if limits.loop_iterations is None else int(limits.loop_iterations * part)


def _nest_launch(launcher: Launcher, nest: Nest, buffers: dict[SSAValue, SSAValue]) -> None:
    """Emit one launch of one nest, by the schedule that suits it."""
    found = find_contraction(nest)
    if found is not None:
        m, n, k, batch = (
            expected_size(product(nest.dims[d].extent for d in dims))
            for dims in (found.m, found.n, found.k, found.batch)
        )
        main = nest.reduction
        divisible = main is not None and sums_up(main)
        tiles = choose_tiles(m, n, k, batch, element_width(nest, found), launcher.limits, divisible=divisible)
        if tiles is not None:
            contraction_launch(launcher, nest, found, tiles, buffers)
            return
    row = RowNest(nest, serial(nest).outer, _alone(launcher.limits, Fraction(7, 8)))
    points = product(nest.dims[d].extent for d in row.bound)
    is_long = expected_size(row.length) >= WORKGROUP_ROWS.long_reduction or row.is_too_long
    if row.shared and is_long and expected_size(points) <= WORKGROUP_ROWS.many_points:
        parts = parts_of(row, points, launcher.limits)
        if parts > 1:
            divided_row_launch(launcher, row, parts, buffers)
        else:
            row_launch(launcher, [row], {}, buffers)
    else:
        point_launch(launcher, nest, buffers)


def _scratch(
    launcher: Launcher, temporaries: Sequence[SSAValue], nests: list[Nest], buffers: dict[SSAValue, SSAValue]
) -> None:
    """Allocate scratch in global memory for temporaries that pass between launches."""
    used = used_buffers(nests)
    for t in temporaries:
        if t in used:
            ty = t.type
            assert isinstance(ty, MemRefType)
            buffers[t] = launcher.scratch(ty.element_type, element_count(shape_of(ty)))
