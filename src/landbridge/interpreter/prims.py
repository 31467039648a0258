"""Runs PrimFuncs on arrays, stage by stage: each over all its iterations at once, or in parts that fit a cache."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

import numpy as np
from xdsl.dialects import arith, func, linalg, memref
from xdsl.ir import Operation, SSAValue

from landbridge.errors import UnsupportedOperatorError
from landbridge.interpreter.accesses import Array, OperandAccess, Ranges, counters_of, number
from landbridge.interpreter.bodies import RepeatedElement, StageBody
from landbridge.interpreter.reductions import combiners_of, contracted, factors_of, unrounded_terms
from landbridge.interpreter.running import RunningStage
from landbridge.interpreter.scalars import number_of, scalar_dtype, signless
from landbridge.ir.kernel_attributes import tile_bounds
from landbridge.ir.plain_attributes import ints
from landbridge.ir.prim_ops import PadOp, StepsOp
from landbridge.ir.stages import Generic, view_generic
from landbridge.ir.types import shape_of

Buffers: TypeAlias = dict[SSAValue, Array]

#: The most iterations that are computed at once: a value for each takes 2 MiB at most.
_AT_ONCE = 1 << 18
#: The most elements of an operand of a contraction that are copied at once.
_FACTORS_AT_ONCE = 1 << 24
#: The most iterations of a stage, and of those that run one after the other: more take longer than a compile should.
_MOST = 1 << 30
_MOST_IN_ORDER = 20_000


def run_prim(function: func.FuncOp, arguments: Sequence[Array]) -> None:
    """Run a PrimFunc on arrays for its memrefs: inputs, which are only read, then outputs, which it writes.

    Raises UnsupportedOperatorError for what is not computed at compile time: operations without a rule, extents that
    are known only at run time, and work that would take minutes.
    """
    buffers: Buffers = {}
    for formal, array in zip(function.body.block.args, arguments, strict=True):
        buffers[formal] = signless(array)
    with np.errstate(all="ignore"):
        for op in function.body.block.ops:
            if isinstance(op, StepsOp):
                _run_steps(op, buffers)
            elif isinstance(op, linalg.ops.GenericOp):
                stage = _Stage(view_generic(op))
                stage.run(buffers, [(0, extent) for extent in stage.extents])
            elif not isinstance(op, func.ReturnOp):
                _run_plain(op, buffers)


def _run_plain(op: Operation, buffers: Buffers) -> None:
    """Run an operation without loops: allocations, constants, fills and pads."""
    if isinstance(op, memref.AllocOp):
        shape = [number(extent) for extent in shape_of(op.memref.type)]
        buffers[op.memref] = np.zeros(shape, scalar_dtype(op.memref.type.element_type))
    elif isinstance(op, arith.ConstantOp):
        buffers[op.result] = np.asarray(number_of(op.value, scalar_dtype(op.result.type)))
    elif isinstance(op, linalg.ops.FillOp):
        buffers[op.outputs[0]][...] = buffers[op.inputs[0]]
    elif isinstance(op, PadOp):
        source, target = buffers[op.source], buffers[op.destination]
        target[...] = number_of(op.value, target.dtype)
        low = [number(extent) for extent in ints(op.low)]
        target[tuple(slice(a, a + e) for a, e in zip(low, source.shape, strict=True))] = source
    else:
        raise UnsupportedOperatorError(f"{op.name} is not a stage that is computed at compile time")


def _run_steps(op: StepsOp, buffers: Buffers) -> None:
    """Run ``lb.steps``: in each iteration every stage, in order, at that iteration of its first loop."""
    inside: Buffers = dict(zip(op.body.block.args, (buffers[b] for b in op.buffers), strict=True))
    stages: list[Operation | _Stage] = [
        _Stage(view_generic(each)) if isinstance(each, linalg.ops.GenericOp) else each for each in op.body.block.ops
    ]
    count = number(op.iterations)
    only = stages[0] if len(stages) == 1 else None
    if isinstance(only, _Stage) and (running := only.running) is not None:
        running.run(inside, [(0, extent) for extent in only.extents])
        return
    if count * len(stages) > _MOST_IN_ORDER:
        raise UnsupportedOperatorError(f"{count} iterations, one after the other, are too many for a compile")
    for iteration in range(count):
        for stage in stages:
            if isinstance(stage, _Stage):
                rest = [(0, extent) for extent in stage.extents[1:]]
                stage.run(inside, [(iteration, iteration + 1), *rest])
            else:
                _run_plain(stage, inside)


class _Stage:
    """A ``linalg.generic``, prepared to run over any part of its loops."""

    def __init__(self, g: Generic) -> None:
        self.extents = [number(extent) for extent in g.extents]
        self._g, loops = g, len(g.extents)
        self._reads = [OperandAccess(operand.map.results, loops) for operand in g.ins]
        self._writes = [OperandAccess(operand.map.results, loops) for operand in g.outs]
        self._reduced = [d for d, kind in enumerate(g.iterators) if kind == "r"]
        self._parallel = [d for d in range(loops) if d not in self._reduced]
        accumulators = [operand.scalar for operand in g.outs]
        self._combiners = combiners_of(g.body, accumulators) if self._reduced else None
        if self._combiners is None:
            last = g.body.last_op
            assert last is not None
            self._body = StageBody(g.body, last.operands)
        else:
            results = [combiner.term for combiner in self._combiners]
            self._body = StageBody(g.body, results, unrounded_terms(self._combiners))
        by_scalar: dict[SSAValue, OperandAccess] = {
            operand.scalar: access for operand, access in zip(g.ins, self._reads, strict=True)
        }
        self._factors = None if self._combiners is None else factors_of(self._combiners, by_scalar)
        targets = {operand.buffer for operand in g.outs}
        self._tile_bounds = tile_bounds(g.op)
        self._is_in_place = any(operand.buffer in targets for operand in g.ins)

    @property
    def running(self) -> RunningStage | None:
        """Returns it as a RunningStage if it is the only stage of such steps; else None."""
        stage = RunningStage(self._g, self._reads, self._writes, self._body)
        return stage if stage.is_found else None

    def run(self, buffers: Buffers, ranges: Ranges) -> None:
        """Run the iterations in ``ranges``, without those of the last tile that ``lb.bounds`` excludes."""
        for part in _inside_tiles(ranges, self._tile_bounds):
            self._run(buffers, part)

    def _run(self, buffers: Buffers, ranges: Ranges) -> None:
        points = prod(stop - start for start, stop in ranges)
        if not points:
            return
        if self._factors is not None and self._contract(buffers, ranges):
            return
        if self._body.copies and not self._reduced:
            self._run_part(buffers, ranges)
            return
        if points > _MOST:
            raise UnsupportedOperatorError(f"{points} iterations are too many for a compile")
        if self._reduced and self._combiners is None:
            self._run_in_order(buffers, ranges, self._reduced)
            return
        for part in _parts(ranges, self._parallel or self._reduced, points, _AT_ONCE):
            try:
                self._run_part(buffers, part)
            except RepeatedElement:
                self._run_in_order(buffers, part, range(len(part)))

    def _run_in_order(self, buffers: Buffers, ranges: Ranges, loops: Sequence[int]) -> None:
        """Run the iterations of ``loops`` one after the other, each at once for all other loops."""
        counts = [ranges[d][1] - ranges[d][0] for d in loops]
        if prod(counts) > _MOST_IN_ORDER:
            raise UnsupportedOperatorError(f"{prod(counts)} iterations in order are too many for a compile")
        for point in np.ndindex(*counts):
            part = list(ranges)
            for d, at in zip(loops, point, strict=True):
                part[d] = (ranges[d][0] + at, ranges[d][0] + at + 1)
            self._run_part(buffers, part)

    def _run_part(self, buffers: Buffers, ranges: Ranges) -> None:
        g = self._g
        arguments: list[Array | None] = [
            access.read(buffers[operand.buffer], ranges) for operand, access in zip(g.ins, self._reads, strict=True)
        ]
        if self._is_in_place:
            arguments = [None if a is None else a.copy() for a in arguments]
        before = [
            access.read(buffers[operand.buffer], ranges) if self._reduced else None
            for operand, access in zip(g.outs, self._writes, strict=True)
        ]
        values = self._body.run([*arguments, *before], buffers, counters_of(ranges))
        shape = [stop - start for start, stop in ranges]
        for number_, (operand, access) in enumerate(zip(g.outs, self._writes, strict=True)):
            value, buffer = values[number_], buffers[operand.buffer]
            if self._combiners is not None:
                held = before[number_]
                assert held is not None
                value = self._combiners[number_].combined(held, value, shape, self._reduced)
            access.write(buffer, ranges, np.asarray(value))

    def _contract(self, buffers: Buffers, ranges: Ranges) -> bool:
        """Sum products by numpy's einsum; returns False if the loops are no contraction."""
        assert self._factors is not None
        g, target = self._g, self._writes[0]
        if not target.is_linear or any(stop - start > 1 for d, (start, stop) in enumerate(ranges)
                                       if d in self._parallel and d not in target.loops):  # fmt: skip
            return False
        chosen = []
        for scalar in self._factors:
            at = next(i for i, operand in enumerate(g.ins) if operand.scalar is scalar)
            chosen.append((self._reads[at], buffers[g.ins[at].buffer]))
        largest = max(prod(ranges[d][1] - ranges[d][0] for d in access.loops) for access, _ in chosen)
        for part in _parts(ranges, self._parallel, largest, _FACTORS_AT_ONCE):
            total = contracted(chosen[0], chosen[1], self._parallel, part)
            if total is None:
                return False
            buffer = buffers[g.outs[0].buffer]
            before = target.read(buffer, part)
            target.write(buffer, part, (before + total).astype(buffer.dtype))
        return True


def _inside_tiles(ranges: Ranges, bounds: Sequence[Sequence[int]]) -> list[Ranges]:
    """Returns the parts of ``ranges`` whose iterations exist: all, or those before and in a last tile that is not full.

    Each of ``bounds`` is the loop over tiles, the loop inside a tile, the extent of a tile, and that of all tiles.
    """
    parts = [ranges]
    for outer, inner, tile, extent in bounds:
        full, left = divmod(extent, tile)
        before = [_clipped(part, outer, 0, full) for part in parts]
        last = [_clipped(_clipped(part, outer, full, full + 1), inner, 0, left) for part in parts]
        parts = [part for part in (*before, *last) if all(start < stop for start, stop in part)]
    return parts


def _clipped(ranges: Ranges, loop: int, low: int, high: int) -> Ranges:
    start, stop = ranges[loop]
    return [*ranges[:loop], (max(start, low), min(stop, high)), *ranges[loop + 1 :]]


def _parts(ranges: Ranges, loops: Sequence[int], points: int, at_once: int) -> list[Ranges]:
    """Returns ``ranges`` cut along the longest of ``loops``, so that a part has about ``at_once`` of ``points``."""
    if points <= at_once or not loops:
        return [ranges]
    longest = max(loops, key=lambda d: ranges[d][1] - ranges[d][0])
    first, last = ranges[longest]
    step = max(1, (last - first) * at_once // points)
    return [
        [(start, min(start + step, last)) if d == longest else r for d, r in enumerate(ranges)]
        for start in range(first, last, step)
    ]
