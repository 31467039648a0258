"""Schedule with a work-item per pixel of an image that a nest writes: it computes the elements of the pixel together.

A nest that does not walk the lanes of its image with one loop first writes rows in memory, and a separate launch makes
an image of them. So do nests of which one reads what another writes: no kernel does both with an image.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from landbridge.ir.types import shape_of
from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.code import Code
from landbridge.passes.lower.grid.cost import WORKGROUPS
from landbridge.passes.lower.grid.launch import Launcher, WorkItem, each_item, is_multiple, usual_threads
from landbridge.passes.lower.grid.points import point_launch
from landbridge.passes.lower.image_memory import copy_pixel, is_image
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.nest_emitter import NestEmitter
from landbridge.passes.lower.operands import Tile
from landbridge.passes.lower.row_memory import split
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule
from landbridge.passes.lower.serial import serial
from landbridge.passes.lower.simplify import drop_held_guards, drop_unit_loops
from landbridge.sizes.size import Extent, ceildiv, product


def written_images(nest: Nest, buffers: Mapping[SSAValue, SSAValue]) -> list[ElementAccess]:
    """Returns the writes of ``nest`` to images."""
    return [w for w in _writes(nest) if is_image(buffers.get(w.buffer, w.buffer).type)]


def read_buffers(nest: Nest) -> set[SSAValue]:
    """Returns the buffers that ``nest`` reads."""
    return {r.buffer for s in nest.stages for r in s.reads if isinstance(r, ElementAccess)} | nest.loaded()


def rows_for_images(
    launcher: Launcher, nests: Sequence[Nest], buffers: dict[SSAValue, SSAValue]
) -> list[tuple[SSAValue, SSAValue]]:
    """Replace images that one of ``nests`` reads and writes by memory in rows; returns each with its image."""
    both: dict[SSAValue, None] = {}
    for nest in nests:
        reads = read_buffers(nest)
        both.update((w.buffer, None) for w in written_images(nest, buffers) if w.buffer in reads)
    found = []
    for buffer in both:
        image = buffers[buffer]
        buffers[buffer] = _rows(launcher, image)
        found.append((buffers[buffer], image))
    return found


def _writes(nest: Nest) -> list[ElementAccess]:
    pairs = [pair for s in nest.stages for pair in zip(s.writes, s.stored, strict=True)]
    return [w for w, stored in pairs if stored]


def _rows(launcher: Launcher, image: SSAValue) -> SSAValue:
    rows, pixels, lanes = shape_of(image.type)
    assert isinstance(image.type, MemRefType)
    return launcher.scratch(image.type.element_type, rows, pixels * lanes)


def pixel_launch(launcher: Launcher, nest: Nest, buffers: dict[SSAValue, SSAValue]) -> None:
    """Launch all points of ``nest``, which is not empty and writes images."""
    nest = drop_held_guards(drop_unit_loops(nest))
    writes = written_images(nest, buffers)
    lanes = {shape_of(buffers[w.buffer].type)[2] for w in writes}
    if lanes == {1}:
        dim = None
    else:
        dim = _lane_loop(nest, writes, max(lanes)) if len(lanes) == 1 else None
        if dim is None:
            _by_way_of_rows(launcher, nest, writes, buffers)
            return
    points = serial(nest)
    outer = tuple(d for d in points.outer if d != dim)
    run = (Run(0, 1, max(lanes)),)
    sched: Schedule = points if dim is None else replace(points, n_dim=dim, n_runs=run, outer=outer)
    extents = [nest.dims[d].extent for d in outer]

    def point(code: Code, number: SSAValue) -> None:
        env = dict(zip(outer, code.unflatten(number, extents), strict=True))
        NestEmitter(code, nest, sched, buffers, env).tile(Tile(0, 1, 0, max(lanes)))

    _each(launcher, product(extents), point)


def _lane_loop(nest: Nest, writes: Sequence[ElementAccess], lanes: int) -> int | None:
    """Returns the loop that walks the lanes of all ``writes``, from the first to the last of each pixel; None if there
    is none."""
    for d, dim in enumerate(nest.dims):
        if dim.reduction or dim.extent != lanes or any(d in (b.outer, b.inner) for b in nest.bounds):
            continue
        if all(_walks_lanes(w, d, lanes) for w in writes):
            return d
    return None


def _walks_lanes(write: ElementAccess, d: int, lanes: int) -> bool:
    row, column = split(write.index)
    others = [c for dim, c in column.coeffs.items() if dim != d] + [stride for stride, _ in column.rest]
    aligned = all(is_multiple(c, lanes) for c in (*others, column.const))
    return column.coeff(d) == 1 and aligned and not row.uses(d) and not column.nonlinear_in(d)


def _by_way_of_rows(
    launcher: Launcher, nest: Nest, writes: Sequence[ElementAccess], buffers: dict[SSAValue, SSAValue]
) -> None:
    instead = dict(buffers)
    for w in writes:
        instead[w.buffer] = _rows(launcher, buffers[w.buffer])
    point_launch(launcher, nest, instead)
    for buffer in {w.buffer: None for w in writes}:
        make_image(launcher, instead[buffer], buffers[buffer])


def make_image(launcher: Launcher, source: SSAValue, image: SSAValue) -> None:
    """Copy rows to an image of as many elements."""
    rows, pixels, lanes = shape_of(image.type)
    assert isinstance(image.type, MemRefType)
    element = image.type.element_type

    def pixel(code: Code, number: SSAValue) -> None:
        row, at = code.unflatten(number, [rows, pixels])
        first = code.mul(at, lanes)
        copy_pixel(code, image, row, at, lambda n: code.load(source, (row, code.add(first, n)), element))

    _each(launcher, rows * pixels, pixel)


def _each(launcher: Launcher, count: Extent, one: Callable[[Code, SSAValue], None]) -> None:
    """Launch a work-item for each number under ``count``, which runs ``one(code, number)``."""
    size = usual_threads(count, WORKGROUPS.default_size, launcher.limits)

    def body(code: Code, item: WorkItem) -> None:
        each_item(code, item, size, count, lambda number: one(code, code.value(number)))

    launcher.launch(ceildiv(count, size), size, body)
