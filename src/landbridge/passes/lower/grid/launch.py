"""Writes launches: ``gpu.launch`` operations and the ids of their work-items. Workgroups have a fixed size; their
number may be a Size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import MemRefType, StringAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from landbridge.errors import CodegenError
from landbridge.ir.allocations import buffer_alloc
from landbridge.ir.length_ops import has_lengths, reserved
from landbridge.ir.types import GLOBAL, extents_attr, nbytes_of
from landbridge.passes.lower.code import INDEX, Code, Index
from landbridge.passes.lower.grid.cost import WORKGROUPS
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, at_least, ceildiv, largest, never_below
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
    """Appends launches to a function whose entry block ``code`` writes; ``extents`` is its operand of Sizes."""

    def __init__(self, code: Code, limits: GridLimits, extents: SSAValue | None = None) -> None:
        self._code, self.limits, self._extents = code, limits, extents
        self.launches = 0

    def launch(self, groups: Extent, threads: int, body: Callable[[Code, WorkItem], None]) -> None:
        """Launch ``groups`` workgroups of ``threads`` work-items that run ``body``.

        More workgroups than one dimension of a launch takes are spread over two dimensions. Raises CodegenError if two
        do not take them.
        """
        if has_lengths([groups]):
            self._launch_shared(groups, threads, body)
            return
        width, height = self._spread(groups)
        block, code = self._body()
        group: Index = code.emit(gpu.BlockIdOp, [], INDEX, dimension=_X)
        if height != 1:
            start = code.mul(code.emit(gpu.BlockIdOp, [], INDEX, dimension=_Y), width)
            # Tests bound what is added last, and nothing has a bound divided by a Size.
            group = code.add(group, start) if isinstance(width, int) else code.add(start, group)
        thread: Index = code.emit(gpu.ThreadIdOp, [], INDEX, dimension=_X) if threads > 1 else 0
        item = WorkItem(code.value(group), code.value(thread))
        if width * height != groups:
            # The condition is uniform in a workgroup, so that barriers stay legal.
            code.when(code.inside(group, groups), lambda: body(code, item))
        else:
            body(code, item)
        self._append(block, code, (width, height, threads))

    def _launch_shared(self, groups: Extent, threads: int, body: Callable[[Code, WorkItem], None]) -> None:
        """Launch workgroups that share the work of ``groups``, which depend on a length: each takes every n-th."""
        count = self.sharers(groups)
        block, code = self._body()
        first = code.emit(gpu.BlockIdOp, [], INDEX, dimension=_X)
        thread: Index = code.emit(gpu.ThreadIdOp, [], INDEX, dimension=_X) if threads > 1 else 0

        def one(group: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            body(code, WorkItem(group, code.value(thread)))
            if any(isinstance(op, gpu.BarrierOp) for op in code.block.walk()):
                barrier(code)  # the next one uses the same local memory
            return []

        code.loop(first, groups, count, [], one)
        self._append(block, code, (count, 1, threads))

    def sharers(self, groups: Extent) -> int:
        """Returns how many workgroups share the work of ``groups``, which depend on a length."""
        is_cpu = self.limits.core_vectors or not self.limits.local_is_faster
        most = self.limits.cores * WORKGROUPS.of_a_core if is_cpu else WORKGROUPS.of_a_gpu
        return max(1, min(never_below(reserved(groups)), most, self.limits.workgroups))

    def _spread(self, groups: Extent) -> tuple[Extent, Extent]:
        """Returns the width and the height of a launch of ``groups`` workgroups."""
        most = self.limits.workgroups
        if isinstance(groups, Size) and at_least(most, groups):
            return groups, 1
        height = ceildiv(groups, most) if isinstance(groups, Size) else -(-groups // most)
        if isinstance(height, int) and height > most:
            raise CodegenError(f"{groups} workgroups; a launch of the target has at most {most} x {most}")
        if isinstance(groups, Size):
            return ceildiv(groups, largest(height, 1)), height
        return -(-groups // height), height

    def launch_counted(self, body: Callable[[Code, SSAValue], Extent]) -> None:
        """Launch workgroups of one work-item; ``body``, given the code and the group's number, returns their number."""
        if self._code.lengths:
            self._launch_shared_count(body)
            return
        if self._extents is not None:
            self._launch_open_count(body)
            return
        block, code = self._body()
        groups = body(code, code.emit(gpu.BlockIdOp, [], INDEX, dimension=_X))
        if groups > self.limits.workgroups:
            raise CodegenError(f"{groups} workgroups; a launch of the target has at most {self.limits.workgroups}")
        if groups:
            self._append(block, code, (groups, 1, 1))

    def _launch_open_count(self, body: Callable[[Code, SSAValue], Extent]) -> None:
        """Launch workgroups of one work-item, whose number is known once ``body`` has written the code of one.

        The width of the launch, and the test that a workgroup is needed, are put in then.
        """
        block, code = self._body()
        zero = code.value(0)
        group, before = self._group_of_two(code)
        is_needed = arith.CmpiOp(group, zero, "ult")
        found: list[Extent] = []
        code.when(code.add_op(is_needed), lambda: found.append(body(code, group)))
        (groups,) = found
        if isinstance(groups, int) and groups == 0:
            return
        width, height = self._spread(groups)
        before.operands[1], is_needed.operands[1] = code.value(width), code.value(groups)
        self._append(block, code, (width, height, 1))

    def _launch_shared_count(self, body: Callable[[Code, SSAValue], Extent]) -> None:
        """Launch workgroups of one work-item that share the work of as many as ``body`` returns, as a length decides.

        The bounds of the loop over these are put in once ``body`` has written the code of one.
        """
        block, code = self._body()
        group, before = self._group_of_two(code)
        found: list[Extent] = []

        def one(number: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            found.append(body(code, number))
            return []

        code.loop(group, 0, 1, [], one)
        loop = block.last_op
        assert isinstance(loop, scf.ForOp)
        (groups,) = found
        if isinstance(groups, int) and groups == 0:
            return
        width, height = (self.sharers(groups), 1) if has_lengths([groups]) else self._spread(groups)
        step = width if has_lengths([groups]) else largest(groups, 1)
        before.operands[1], loop.operands[1], loop.operands[2] = map(code.value, (width, groups, step))
        self._append(block, code, (width, height, 1))

    def _group_of_two(self, code: Code) -> tuple[SSAValue, arith.MuliOp]:
        """Returns the number of a workgroup in two dimensions, and the product in it whose factor 0 becomes the
        width.
        """
        column, row = (code.emit(gpu.BlockIdOp, [], INDEX, dimension=axis) for axis in (_X, _Y))
        before = arith.MuliOp(row, code.value(0))
        return code.add_op(arith.AddiOp(code.add_op(before), column)), before

    def _append(self, block: Block, code: Code, shape: tuple[Extent, Extent, int]) -> None:
        if any(at_least(0, count) is True for count in shape):
            return  # no size has a workgroup
        block.add_op(gpu.TerminatorOp.create())
        code.finish()
        width, height, threads = (self._code.value(n) for n in shape)
        one = self._code.value(1)
        self._code.block.add_op(gpu.LaunchOp(Region(block), (width, height, one), (threads, one, one)))
        self.launches += 1

    def scratch(self, element: Attribute, *extents: Extent) -> SSAValue:
        """Allocate memory of elements in these extents that lives while the function's launches run."""
        extents = tuple(map(reserved, extents))
        known = [extent for extent in extents if isinstance(extent, int)]
        if len(known) == len(extents):
            return _alloc(self._code, element, known, "global")
        ty = MemRefType(element, extents_attr([largest(extent, 1) for extent in extents]), memory_space=GLOBAL)
        nbytes = nbytes_of(ty)
        self._code.value(nbytes)  # a word says how many bytes a run needs
        return self._code.hoist(buffer_alloc(ty))

    def _body(self) -> tuple[Block, Code]:
        """Returns the block of a launch, whose arguments (ids and sizes) are not used, and the builder of its code."""
        block = Block(arg_types=[INDEX] * 12)
        return block, Code(block, self._extents, self._code.words, self._code.lengths)


def usual_threads(count: Extent, most: int, limits: GridLimits) -> int:
    """Returns the size of workgroups for ``count`` work-items in all: at most ``most``."""
    return max(1, min(never_below(count), most, limits.workgroup_size))  # a count of 0 launches nothing


def each_item(code: Code, item: WorkItem, size: int, count: Extent, one: Callable[[Index], None]) -> None:
    """Emit ``one`` for the number of a work-item among ``count``, in workgroups of ``size``."""
    number = code.add(code.mul(item.group, size), item.thread)
    if is_multiple(count, size):
        one(number)
    else:
        code.when(code.inside(number, count), lambda: one(number))


def is_multiple(extent: Extent, of: int) -> bool:
    """Returns whether ``extent`` is a multiple of ``of`` for all sizes."""
    rest = extent % of
    return isinstance(rest, int) and rest == 0


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
