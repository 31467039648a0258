"""Schedule with one work-item per point of a nest; it runs reductions serially. It is correct for every nest."""

from __future__ import annotations

import math
from collections.abc import Mapping

from xdsl.ir import SSAValue

from landbridge.passes.lower.code import Code
from landbridge.passes.lower.grid.launch import Launcher, WorkItem
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.nest_emitter import NestEmitter
from landbridge.passes.lower.serial import ONE, serial

#: The default size of a workgroup: enough to fill the vector units of any device.
USUAL_SIZE = 128


def point_launch(launcher: Launcher, nest: Nest, buffers: Mapping[SSAValue, SSAValue]) -> None:
    """Launch all points of ``nest``, which is simplified and not empty."""
    sched = serial(nest)
    extents = [nest.dims[d].extent for d in sched.outer]
    count = math.prod(extents)
    size = min(count, USUAL_SIZE, launcher.limits.workgroup_size)

    def body(code: Code, item: WorkItem) -> None:
        t = code.add(code.mul(item.group, size), item.thread)

        def point() -> None:
            env = dict(zip(sched.outer, code.unflatten(t, extents), strict=True))
            NestEmitter(code, nest, sched, buffers, env).tile(ONE)

        if count % size:
            code.when(code.inside(t, count), point)
        else:
            point()

    launcher.launch(-(-count // size), size, body)
