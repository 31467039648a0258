"""Schedule with one work-item per point of a nest; it runs reductions serially. It is correct for every nest."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.grid.cost import WORKGROUPS
from landbridge.passes.lower.grid.launch import Launcher, WorkItem, each_item, usual_threads
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.nest_emitter import NestEmitter
from landbridge.passes.lower.serial import ONE, serial
from landbridge.sizes.size import ceildiv, product


def point_launch(launcher: Launcher, nest: Nest, buffers: Mapping[SSAValue, SSAValue]) -> None:
    """Launch all points of ``nest``, which is simplified and not empty."""
    sched = serial(nest)
    extents = [nest.dims[d].extent for d in sched.outer]
    count = product(extents)
    size = usual_threads(count, WORKGROUPS.default_size, launcher.limits)

    def body(code: Code, item: WorkItem) -> None:
        def point(number: Index) -> None:
            env = dict(zip(sched.outer, code.unflatten(number, extents), strict=True))
            NestEmitter(code, nest, sched, buffers, env).tile(ONE)

        each_item(code, item, size, count, point)

    launcher.launch(ceildiv(count, size), size, body)
