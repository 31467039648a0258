"""Writes launches: ``gpu.launch`` operations with shapes known at compile time, and the ids of their work-items."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects import gpu
from xdsl.dialects.builtin import MemRefType, StringAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from landbridge.errors import CodegenError
from landbridge.ir.allocations import buffer_alloc
from landbridge.passes.lower.code import INDEX, Code, Index
from landbridge.records import record
from landbridge.targets.grid import GridLimits

#: The scope of memory that the work-items of a workgroup share.
LOCAL = "local"
_X, _Y = gpu.DimensionAttr(gpu.DimensionEnum.X), gpu.DimensionAttr(gpu.DimensionEnum.Y)


@record(frozen=True)
class WorkItem:
    """The ids of a work-item: ``group`` of the launch and ``thread`` of its workgroup, counted from 0."""

    group: SSAValue
    thread: SSAValue


class Launcher:
    """Appends launches to a function whose entry block ``code`` writes."""

    def __init__(self, code: Code, limits: GridLimits) -> None:
        self._code, self.limits = code, limits
        self.launches = 0

    def launch(self, groups: int, threads: int, body: Callable[[Code, WorkItem], None]) -> None:
        """Launch ``groups`` workgroups of ``threads`` work-items that run ``body``.

        More workgroups than one dimension of a launch takes are spread over two dimensions. Raises CodegenError if two
        do not take them.
        """
        most = self.limits.workgroups
        height = -(-groups // most)
        if height > most:
            raise CodegenError(f"{groups} workgroups; a launch of the target has at most {most} x {most}")
        width = -(-groups // height)
        block, code = _body()
        group: Index = code.emit(gpu.BlockIdOp, [], INDEX, dimension=_X)
        if height > 1:
            row = code.emit(gpu.BlockIdOp, [], INDEX, dimension=_Y)
            group = code.add(group, code.mul(row, width))
        thread: Index = code.emit(gpu.ThreadIdOp, [], INDEX, dimension=_X) if threads > 1 else 0
        item = WorkItem(code.value(group), code.value(thread))
        if width * height > groups:
            # The condition is uniform in a workgroup, so that barriers stay legal.
            code.when(code.inside(group, groups), lambda: body(code, item))
        else:
            body(code, item)
        self._append(block, code, (width, height, threads))

    def launch_counted(self, body: Callable[[Code, SSAValue], int]) -> None:
        """Launch workgroups of one work-item; ``body``, given the code and the group's number, returns their number."""
        block, code = _body()
        groups = body(code, code.emit(gpu.BlockIdOp, [], INDEX, dimension=_X))
        if groups > self.limits.workgroups:
            raise CodegenError(f"{groups} workgroups; a launch of the target has at most {self.limits.workgroups}")
        if groups:
            self._append(block, code, (groups, 1, 1))

    def _append(self, block: Block, code: Code, shape: tuple[int, int, int]) -> None:
        block.add_op(gpu.TerminatorOp.create())
        code.finish()
        width, height, threads = (self._code.value(n) for n in shape)
        one = self._code.value(1)
        self._code.block.add_op(gpu.LaunchOp(Region(block), (width, height, one), (threads, one, one)))
        self.launches += 1

    def scratch(self, element: Attribute, *extents: int) -> SSAValue:
        """Allocate memory of elements in these extents that lives while the function's launches run."""
        return _alloc(self._code, element, extents, "global")


def _body() -> tuple[Block, Code]:
    """Returns the block of a launch, whose arguments (ids and sizes) are not used, and the builder of its code."""
    block = Block(arg_types=[INDEX] * 12)
    return block, Code(block)


def local_memory(code: Code, element: Attribute, count: int) -> SSAValue:
    """Allocate ``count`` elements that the work-items of a workgroup share."""
    return _alloc(code, element, [count], LOCAL)


def _alloc(code: Code, element: Attribute, extents: Sequence[int], scope: str) -> SSAValue:
    ty = MemRefType(element, [max(extent, 1) for extent in extents], memory_space=StringAttr(scope))
    return code.hoist(buffer_alloc(ty))


def barrier(code: Code) -> None:
    """Emit a barrier of the workgroup; writes before it are visible to all its work-items after it."""
    code.block.add_op(gpu.BarrierOp.create())


def power_of_two(wanted: int, most: int) -> int:
    """Returns the smallest power of two that is at least ``wanted``, but none over ``most``."""
    return 1 << min(math.ceil(math.log2(max(wanted, 1))), most.bit_length() - 1)
