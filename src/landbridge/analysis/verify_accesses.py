"""Proof that a lowered function reads and writes inside its buffers alone.

Every load and store, of a scalar or a vector, masked or not, must have indices whose range is known from loops, tests
and clamps to lie inside the memref. What is not proved is an error: a fault of lowering, or of an operator that reads
at a computed index without clamping it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith, func, gpu, memref, scf, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, MemRefType, VectorType
from xdsl.ir import Block, Operation, SSAValue

from landbridge.analysis.index_ranges import IndexRanges
from landbridge.analysis.linear_forms import Form, constant
from landbridge.errors import AccessError
from landbridge.ir.attributes import task_count

_READS = (memref.LoadOp, vector.LoadOp, vector.MaskedLoadOp)
#: Accesses, and which operand is the buffer; the indices follow it.
_BUFFER: dict[type[Operation], int] = {
    memref.LoadOp: 0,
    vector.LoadOp: 0,
    vector.MaskedLoadOp: 0,
    memref.StoreOp: 1,
    vector.StoreOp: 1,
    vector.MaskedStoreOp: 0,
}


def verify_accesses(function: func.FuncOp) -> None:
    """Raise AccessError, naming access, range and extent, unless every access of a lowered function is proved."""
    ranges = IndexRanges()
    arguments = [a for a in function.body.block.args if isinstance(a.type, IndexType)]
    tasks = task_count(function)
    if len(arguments) == 2 and tasks is not None:
        begin, end = arguments  # begin < end, or nothing is done
        ranges.define(begin, [constant(0)], [constant(tasks - 1)])
        ranges.define(end, [ranges.form(begin).plus(constant(1))], [constant(tasks)])
    _Walk(function, ranges).block(function.body.block)


class _Walk:
    """One function."""

    def __init__(self, function: func.FuncOp, ranges: IndexRanges) -> None:
        self._function, self._ranges = function, ranges
        self._harmless = set[type[Operation]]()
        self._visits: dict[type, Callable[[Any], None]] = {
            scf.ForOp: self._loop,
            scf.IfOp: self._branches,
            gpu.LaunchOp: lambda op: self.block(op.body.block),
            **dict.fromkeys(_BUFFER, self._access),
        }

    def block(self, block: Block) -> None:
        """What ``block`` accesses, and the blocks in it."""
        op = block.first_op
        while op is not None:
            kind = type(op)
            if kind in self._visits:
                self._visits[kind](op)
            elif kind not in self._harmless:
                self._must_be_harmless(op)
            op = op.next_op

    def _must_be_harmless(self, op: Operation) -> None:
        """``op`` has no way to reach memory; where all of its kind have none, it is not asked again."""
        if op.regions or any(isinstance(v.type, MemRefType) for v in op.operands):
            raise AccessError(f"@{self._function.sym_name.data} has a {op.name}, whose accesses nothing is known of")
        if op.name.startswith(_ON_VALUES_ALONE):
            self._harmless.add(type(op))

    def _loop(self, op: scf.ForOp) -> None:
        ranges = self._ranges
        low, high, step = map(ranges.form, op.operands[:3])
        if ranges.largest(high.plus(low, -1)) <= 0:
            return  # never entered
        by = 1 if step.terms else step.const
        whole = ranges.is_multiple(high.plus(low, -1), by)
        ranges.count(op.body.block.args[0], low, by, high.plus(constant(-by if whole else -1)))
        self.block(op.body.block)

    def _branches(self, op: scf.IfOp) -> None:
        for region, holds in zip(op.regions, (True, False), strict=True):
            if region.blocks:
                with self._ranges.where(op.operands[0], holds) as reached:
                    if reached:
                        self.block(region.block)

    def _access(self, op: Any) -> None:
        operands = op.operands
        position = _BUFFER[type(op)]
        buffer = operands[position]
        first, last = _lanes(op)
        if first > last:
            return  # every lane is masked
        ty = buffer.type
        assert isinstance(ty, MemRefType)
        inner = (0, 0)
        for axis, extent in enumerate(shape := ty.get_shape(), 1):
            index = self._ranges.form(operands[position + axis])
            self._inside(op, buffer, index, extent, (first, last) if axis == len(shape) else inner)
        if not shape:
            self._inside(op, buffer, constant(0), 1, (first, last))

    def _inside(self, op: Operation, buffer: SSAValue, index: Form, extent: int, lanes: tuple[int, int]) -> None:
        """``index`` plus any of ``lanes`` lies in ``0 .. extent``."""
        if self._ranges.lies_within(index, -lanes[0], extent - 1 - lanes[1]):
            return
        least, most = self._ranges.range_of(index)
        low, high = least + lanes[0], most + lanes[1]
        if low <= high:
            verb = "reads" if isinstance(op, _READS) else "writes"
            raise AccessError(
                f"@{self._function.sym_name.data} {verb} {_name(buffer)}, a {buffer.type}, at elements {low} to {high} "
                f"by {op.name}, as far as can be proved; it has {extent}. This is a fault of the compiler or of the "
                f"operator's definition: clamp or test the index before the access"
            )


#: Dialects without operations on memory.
_ON_VALUES_ALONE = ("arith.", "math.")
_VECTORS = frozenset((vector.LoadOp, vector.StoreOp, vector.MaskedLoadOp, vector.MaskedStoreOp))


def _lanes(op: Any) -> tuple[int, int]:
    """The first and last element, counted from its index, that an access reaches."""
    if type(op) not in _VECTORS:
        return 0, 0
    value = op.results[0] if op.results else op.operands[0 if isinstance(op, vector.StoreOp) else -1]
    assert isinstance(value.type, VectorType)
    count = value.type.get_shape()[-1]
    if isinstance(op, vector.MaskedLoadOp | vector.MaskedStoreOp) and isinstance(op.mask.owner, arith.ConstantOp):
        mask = op.mask.owner.value
        if isinstance(mask, DenseIntOrFPElementsAttr):
            kept = [i for i, bit in enumerate(mask.get_values()) if bit]
            return (kept[0], kept[-1]) if kept else (0, -1)
    return 0, count - 1


def _name(buffer: SSAValue) -> str:
    """How a message names a buffer."""
    block = buffer.owner
    if isinstance(block, Block):
        return f"operand {list(block.args).index(buffer)}"  # type: ignore[arg-type]
    return "a temporary"
