"""Proves that a lowered function accesses its buffers only in bounds.

Every load and store, scalar or vector, masked or not, must have the memref's element type, and indices whose range is
proved from loops, tests and clamps to lie inside the memref. An access without proof is an error; ``access_errors.py``
tells who has to correct it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import func, gpu, scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, Operation, SSAValue

from landbridge.analysis.index_ranges import IndexRanges
from landbridge.analysis.linear_forms import Form, Terms, constant
from landbridge.analysis.lowered_accesses import ACCESSES, LoweredAccess, lowered_access
from landbridge.analysis.open_ranges import OpenRanges
from landbridge.errors import AccessError
from landbridge.identity_map import IdentityMap
from landbridge.ir.kernel_attributes import has_sizes, sizes_of, task_count
from landbridge.ir.length_ops import SizedByOp
from landbridge.ir.prim_ops import OrderLoadsOp, PrefetchOp
from landbridge.ir.traversal import operations_of
from landbridge.records import record
from landbridge.sizes.size import split_number


def verify_accesses(function: func.FuncOp) -> None:
    """Raises AccessError, naming access, range and extent, unless every access of a lowered function is proved in
    bounds."""
    arguments = [a for a in function.body.block.args if isinstance(a.type, IndexType)]
    tasks = task_count(function)
    computed = [op.size.data for op in operations_of(function, SizedByOp)]
    words = [a for a in function.body.block.args if isinstance(a.type, MemRefType)][-1:] if has_sizes(function) else []
    is_open = bool(words or computed)
    ranges = OpenRanges(words[0] if words else None, sizes_of(function), tasks, computed) if is_open else IndexRanges()
    if len(arguments) == 2 and tasks is not None:
        begin, end = arguments  # begin < end, or nothing is done
        ranges.define(begin, [constant(0)], [constant(tasks - 1)])
        ranges.define(end, [ranges.form(begin).plus(constant(1))], [constant(tasks)])
    _Walk(function, ranges).block(function.body.block)


@record(frozen=True, slots=True)
class _Reach:
    """The elements that ``access`` reaches along an axis of ``extent`` elements.

    They are the ``lanes``, first and last, from ``index`` on; ``number`` is the constant part of the index.
    """

    access: LoweredAccess
    index: Form
    number: int
    lanes: tuple[int, int]
    extent: int


class _Walk:
    """Verifies one function."""

    def __init__(self, function: func.FuncOp, ranges: IndexRanges | OpenRanges) -> None:
        self._function, self._ranges = function, ranges
        self._harmless: set[type[Operation]] = {
            PrefetchOp,
            OrderLoadsOp,
        }  # a prefetch of an illegal address does not fault
        #: Accesses of the current block, by the terms of the index and its other non-constant parts.
        self._pending: IdentityMap[Terms, dict[tuple[object, int], list[_Reach]]] = IdentityMap()

    def block(self, block: Block) -> None:
        """Verify the accesses of ``block``, and the blocks in it."""
        outside, self._pending = self._pending, IdentityMap()
        op = block.first_op
        while op is not None:
            kind = type(op)
            if (visit := _VISITS.get(kind)) is not None:
                visit(self, op)
            elif kind not in self._harmless:
                self._must_be_harmless(op)
            op = op.next_op
        for by_size in self._pending.values():
            for reaches in by_size.values():
                self._prove(reaches)
        self._pending = outside

    def _must_be_harmless(self, op: Operation) -> None:
        """Raises AccessError if ``op`` has regions or operands in memory; kinds that never can have are tested once."""
        if op.regions or any(type(v.type) is MemRefType for v in op.operands):
            name = self._function.sym_name.data
            raise AccessError(f"@{name} has a {op.name}, whose accesses are unknown", name)
        if op.name.startswith(_ON_VALUES_ALONE):
            self._harmless.add(type(op))

    def _loop(self, op: scf.ForOp) -> None:
        ranges = self._ranges
        low, high, step = map(ranges.form, op.operands[:3])
        if ranges.is_at_most(high.plus(low, -1), 0):
            return  # never entered
        by = 1 if step.terms else step.const
        whole = ranges.is_multiple(high.plus(low, -1), by)
        ranges.count(op.body.block.args[0], low, by, high.plus(constant(-by if whole else -1)))
        with ranges.entered(high.plus(low, -1)):
            self.block(op.body.block)

    def _repeat(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        self.block(before)
        condition, *passed = before.last_op.operands  # type: ignore[union-attr]
        for argument, value in zip(after.args, passed, strict=True):
            if isinstance(argument.type, IndexType):
                same = [self._ranges.form(value)]
                self._ranges.define(argument, same, same)
        with self._ranges.where(condition) as reached:
            if reached:
                self.block(after)

    def _launch(self, op: gpu.LaunchOp) -> None:
        groups = self._ranges.form(op.gridSizeX), self._ranges.form(op.gridSizeY)
        with self._ranges.entered(groups[0]), self._ranges.entered(groups[1]):
            self.block(op.body.block)

    def _branches(self, op: scf.IfOp) -> None:
        for region, holds in zip(op.regions, (True, False), strict=True):
            if region.blocks:
                with self._ranges.where(op.operands[0], holds) as reached:
                    if reached:
                        self.block(region.block)

    def _access(self, op: Operation) -> None:
        access = lowered_access(op)
        if access.element != access.buffer.type.element_type:  # type: ignore[attr-defined]
            name = self._function.sym_name.data
            subject = f"{_name(access.buffer)}, a {access.buffer.type}"
            raise AccessError(f"@{name} accesses {subject}, as {access.element} by {op.name}", name)
        if access.first > access.last:
            return  # every lane is masked
        shape, lanes = access.shape, (access.first, access.last)
        for axis, (index, extent) in enumerate(zip(access.indices, shape, strict=True), 1):
            form = self._ranges.form(index)
            if axis == len(shape) and access.retained is not None and self._retained_inside(form, access, extent):
                return
            self._reach(access, form, extent, lanes if axis == len(shape) else (0, 0))
        if not shape:
            self._reach(access, constant(0), 1, lanes)

    def _retained_inside(self, index: Form, access: LoweredAccess, extent: int) -> bool:
        """Returns whether the lanes that ``access`` enables from ``index`` on are known to be in bounds."""
        ranges = self._ranges
        assert access.retained is not None
        first = index if access.skipped is None else index.plus(ranges.form(access.skipped))
        end = index.plus(ranges.form(access.retained))
        return ranges.is_at_most(first.scaled(-1), 0) and ranges.is_at_most(end, extent)

    def _reach(self, access: LoweredAccess, index: Form, extent: int, lanes: tuple[int, int]) -> None:
        size, number = split_number(index.const)
        reach = _Reach(access, index, number, lanes, extent)
        self._pending.setdefault(index.terms, {}).setdefault((size, extent), []).append(reach)

    def _prove(self, reaches: list[_Reach]) -> None:
        """Prove indices that differ by constants; the smallest and the largest imply all others."""
        first = reaches[0]
        low = min(r.number + r.lanes[0] for r in reaches) - first.number
        high = max(r.number + r.lanes[1] for r in reaches) - first.number
        if not self._ranges.lies_within(first.index, -low, first.extent - 1 - high):
            for reach in reaches:
                self._inside(reach)

    def _inside(self, reach: _Reach) -> None:
        access, lanes, extent = reach.access, reach.lanes, reach.extent
        if self._ranges.lies_within(reach.index, -lanes[0], extent - 1 - lanes[1]):
            return
        least, most = self._ranges.range_of(reach.index)
        low, high = least + lanes[0], most + lanes[1]
        if low <= high:
            verb = "reads" if access.reads else "writes"
            name = self._function.sym_name.data
            raise AccessError(
                f"@{name} {verb} {_name(access.buffer)}, a {access.buffer.type}, at elements {low} to {high} by "
                f"{access.op.name}, as far as can be proved; it has {extent}",
                name,
            )


#: Handlers of operations that may access memory, or hold blocks that do. Bound methods would make a reference cycle.
_VISITS: dict[type, Callable[[_Walk, Any], None]] = {
    scf.ForOp: _Walk._loop,
    scf.IfOp: _Walk._branches,
    scf.WhileOp: _Walk._repeat,
    gpu.LaunchOp: _Walk._launch,
    **dict.fromkeys(ACCESSES, _Walk._access),
}
#: Prefixes of the names of operations that take no memory operand.
_ON_VALUES_ALONE = ("arith.", "math.", "vector.broadcast", "vector.insert")


def _name(buffer: SSAValue) -> str:
    """Returns the name of a buffer for messages."""
    block = buffer.owner
    if isinstance(block, Block):
        return f"operand {list(block.args).index(buffer)}"  # type: ignore[arg-type]
    return "a temporary"
