"""One work-item for each point of a nest; reductions run in it serially. Right for every nest."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from xdsl.ir import SSAValue

from landbridge.passes.lower.access import Access
from landbridge.passes.lower.code import Code
from landbridge.passes.lower.grid.launch import Item, Launcher
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.nest_emitter import NestEmitter
from landbridge.passes.lower.operands import Tile
from landbridge.passes.lower.schedule import Run, Schedule

#: Work-items of a workgroup where nothing else decides: enough to fill the vector units of any device.
USUAL_SIZE = 128
ONE = Tile(0, 1, 0, 1)


def serial(nest: Nest, bound: Collection[int] = ()) -> Schedule:
    """One point at a time: no lanes, no register block. Dims ``bound`` are those of loops around it.

    The outer loops end with the one that walks the result contiguously: neighbours write side by side.
    """
    free = [d for d in range(len(nest.dims)) if d not in bound]
    parallel = by_stride([d for d in free if not nest.dims[d].reduction], nest.stages[-1].writes[0])
    reductions = tuple(d for d in free if nest.dims[d].reduction)
    one = (Run(0, 1, 1),)
    return Schedule(None, 1, False, None, one, None, one, parallel, reductions, 1)


def by_stride(dims: Collection[int], access: Access) -> tuple[int, ...]:
    """``dims`` from the one that takes the longest strides through ``access``; those it does not use come first."""
    return tuple(sorted(dims, key=lambda d: -abs(access.index.coeff(d)) or -math.inf))


def point_launch(launcher: Launcher, nest: Nest, buffers: Mapping[SSAValue, SSAValue]) -> None:
    """All points of ``nest``, which is simplified and not empty."""
    sched = serial(nest)
    extents = [nest.dims[d].extent for d in sched.outer]
    count = math.prod(extents)
    size = min(count, USUAL_SIZE, launcher.limits.workgroup_size)

    def body(code: Code, item: Item) -> None:
        t = code.add(code.mul(item.group, size), item.thread)

        def point() -> None:
            env = dict(zip(sched.outer, code.unflatten(t, extents), strict=True))
            NestEmitter(code, nest, sched, buffers, env).tile(ONE)

        if count % size:
            code.when(code.inside(t, count), point)
        else:
            point()

    launcher.launch(-(-count // size), size, body)
