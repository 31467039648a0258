"""Emits bodies that compute indices for a vector of lanes.

Values that are equal in all lanes are computed once, as scalars. Neighbouring elements are loaded and stored as a
vector, all others lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from xdsl.dialects import arith, linalg, memref, vector
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, IndexType, IntegerType, VectorType
from xdsl.ir import SSAValue

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.body import copied, location_of
from landbridge.passes.lower.code import Code, Index, Where, vector_type
from landbridge.passes.lower.lane_walk import Walk, walk_of
from landbridge.passes.lower.nest import Stage
from landbridge.passes.lower.row_memory import index_strides
from landbridge.records import record
from landbridge.sizes.size import Extent

if TYPE_CHECKING:
    from xdsl.ir import Operation

#: Operations that trap on a zero, which masked-off lanes contain.
_TRAPPING = {f"arith.{op}" for op in ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")}
_INDEXING = _TRAPPING | {memref.LoadOp.name, memref.StoreOp.name, linalg.ops.IndexOp.name}


def computes_indices(stage: Stage) -> bool:
    """Returns whether the body uses loop indices, loads or stores by itself, or has operations that may trap."""
    return any(op.name in _INDEXING for op in stage.body.ops)


def work_by_lane(stage: Stage, lane: int) -> tuple[int, int] | None:
    """Returns how many values are loaded lane by lane if vectors lie along loop ``lane``, and how many floats vectors
    compute.

    Returns None if operations may trap in inactive lanes, or if lanes store elements that do not form a vector.
    """
    steps, loads, computed = lane_steps(stage, lane), 0, 0
    for op in stage.body.ops:
        if op.name in _TRAPPING and any(steps[v] != 0 for v in op.operands):
            return None
        if isinstance(op, memref.StoreOp):
            if not _stores_a_vector(op, stage, steps):
                return None
            continue
        if isinstance(op, memref.LoadOp):
            loads += _element_step(op, steps) not in (0, 1)
        elif isinstance(op, linalg.ops.IndexOp):
            loads += steps[op.results[0]] is None
        else:
            computed += any(steps[r] is None and isinstance(r.type, AnyFloat) for r in op.results)
    return loads, computed


def counts_lanes(stage: Stage, lane: int) -> bool:
    """Returns whether the body uses only loop indices, and along loop ``lane`` each is the same or increases evenly
    over the lanes.
    """
    steps = lane_steps(stage, lane)
    indexing = [op for op in stage.body.ops if op.name in _INDEXING]
    return all(isinstance(op, linalg.ops.IndexOp) and steps[op.results[0]] is not None for op in indexing)


def lane_steps(stage: Stage, lane: int) -> Mapping[SSAValue, int | None]:
    """Returns, for each value of the body, its increment from one lane to the next; None if it is unknown or not
    constant.
    """
    steps: dict[SSAValue, int | None] = dict.fromkeys(stage.body.args)
    for argument, read in zip(stage.body.args, stage.reads, strict=False):
        if isinstance(read, ElementAccess) and walk_of(read, lane) is Walk.STAYS:
            steps[argument] = 0
    for op in stage.body.ops:
        for result in op.results:
            steps[result] = _step(op, stage, lane, steps)
    return steps


def _stores_a_vector(op: memref.StoreOp, stage: Stage, steps: Mapping[SSAValue, int | None]) -> bool:
    """Returns whether neighbouring lanes store neighbouring elements, and no lane loads what another lane stores."""
    if _element_step(op, steps) != 1:
        return False
    accesses = [o for o in stage.body.ops if isinstance(o, memref.LoadOp | memref.StoreOp) and o.memref is op.memref]
    return all(o is op or (isinstance(o, memref.LoadOp) and tuple(o.indices) == tuple(op.indices)) for o in accesses)


def _step(op: Operation, stage: Stage, lane: int, steps: Mapping[SSAValue, int | None]) -> int | None:
    operand_steps = [steps[v] for v in (op.indices if isinstance(op, memref.LoadOp) else op.operands)]
    if isinstance(op, linalg.ops.IndexOp):
        index = stage.dims[op.dim.value.data]
        step = index.coeff(lane)
        return None if index.nonlinear_in(lane) or not isinstance(step, int) else step
    if isinstance(op, memref.LoadOp):
        return 0 if all(s == 0 for s in operand_steps) else None
    if all(s == 0 for s in operand_steps):
        return 0
    if any(s is None for s in operand_steps) or not _is_exact(op.results[0].type):
        return None
    if isinstance(op, arith.IndexCastOp):
        return operand_steps[0]
    if isinstance(op, arith.AddiOp | arith.SubiOp):
        assert operand_steps[0] is not None and operand_steps[1] is not None
        return (
            operand_steps[0] + operand_steps[1] if isinstance(op, arith.AddiOp) else operand_steps[0] - operand_steps[1]
        )
    return None


def _is_exact(ty: object) -> bool:
    """Returns whether an integer type is wide enough for every loop index."""
    return isinstance(ty, IndexType) or (isinstance(ty, IntegerType) and ty.width.data >= 64)


def _element_step(op: memref.LoadOp | memref.StoreOp, steps: Mapping[SSAValue, int | None]) -> Extent | None:
    """Returns the increment of the accessed element from lane to lane, in elements; None if it is unknown."""
    total: Extent = 0
    for index, stride in zip(op.indices, index_strides(op.memref.type), strict=True):
        step = steps[index]
        if step is None:
            return None
        total += step * stride
    return total


@record
class LaneBody:
    """Emits a body for ``lanes`` lanes along loop ``lane``, of which the first ``active`` exist (0 for all).

    ``inputs`` are the values of the body's arguments; ``index(d, more)`` returns the index of loop ``d``, ``more``
    lanes after the first.
    """

    code: Code
    stage: Stage
    inputs: Sequence[SSAValue | None]
    lane: int
    lanes: int
    active: Index
    index: Callable[[int, Index], Index]
    buffers: Mapping[SSAValue, SSAValue]
    _whole: dict[SSAValue, SSAValue] = field(default_factory=dict)
    _at: dict[tuple[SSAValue, int], SSAValue] = field(default_factory=dict)
    _steps: Mapping[SSAValue, int | None] = field(default_factory=dict)
    _arguments: Mapping[SSAValue, SSAValue | None] = field(default_factory=dict)

    def emit(self) -> list[SSAValue]:
        """Emit the body and its stores; returns the yielded values, as a scalar if it is equal in all lanes."""
        self._steps = lane_steps(self.stage, self.lane)
        self._arguments = dict(zip(self.stage.body.args, self.inputs, strict=False))
        for op in self.stage.body.ops:
            if isinstance(op, memref.StoreOp):
                self._store(op)
        (end,) = (op for op in self.stage.body.ops if isinstance(op, linalg.ops.YieldOp))
        return [self._vector(v) for v in end.operands]

    def _store(self, op: memref.StoreOp) -> None:
        value, where = self._vector(op.value), self._location(op, 0)
        if not isinstance(value.type, VectorType):
            value = self.code.broadcast(value, self.lanes)
        self.code.store_vector(value, self.buffers[op.memref], where, self.lanes, self.active)

    def _vector(self, value: SSAValue) -> SSAValue:
        """Returns ``value`` in all lanes: a vector, or a scalar if it is equal in all of them."""
        if (found := self._whole.get(value)) is None:
            found = self._whole[value] = self._created_vector(value)
        return found

    def _created_vector(self, value: SSAValue) -> SSAValue:
        code, op = self.code, value.owner
        if value in self._arguments:
            argument = self._arguments[value]
            assert argument is not None
            return argument
        if self._steps[value] == 0:
            return self._scalar(value, 0)
        step = self._steps[value]
        if isinstance(op, linalg.ops.IndexOp) and step is not None:
            return self._ramp(self._scalar(value, 0), step)
        if isinstance(op, arith.IndexCastOp) and (step := self._steps[op.input]) is not None:
            # also for narrow integers: the additions wrap as the cast does
            return self._ramp(self._scalar(value, 0), step)
        if isinstance(op, memref.LoadOp) and _element_step(op, self._steps) == 1:
            where, element = self._location(op, 0), op.results[0].type
            return code.load_vector(self.buffers[op.memref], where, element, self.lanes, self.active)
        if isinstance(op, memref.LoadOp | linalg.ops.IndexOp):
            active = self.active if isinstance(self.active, int) and self.active else self.lanes
            return code.pack([self._scalar(value, lane) for lane in range(active)], self.lanes)
        operands = [self._vector(v) for v in op.operands]  # type: ignore[union-attr]
        return copied(code, op, operands, self.lanes)  # type: ignore[arg-type]

    def _ramp(self, first: SSAValue, step: int) -> SSAValue:
        """Returns a vector that begins with ``first`` and increases by ``step`` from lane to lane."""
        ty = vector_type(first.type, self.lanes)
        ramp = self.code.constant(DenseIntOrFPElementsAttr.from_list(ty, [step * i for i in range(self.lanes)]), ty)
        return self.code.emit(arith.AddiOp, [self.code.broadcast(first, self.lanes), ramp], ty)

    def _scalar(self, value: SSAValue, lane: int) -> SSAValue:
        """Returns ``value`` in one lane. If the number of active lanes is open, lanes after the last active one repeat
        its value.
        """
        lane = 0 if self._steps[value] == 0 else lane
        if (found := self._at.get((value, lane))) is None:
            found = self._at[value, lane] = self._created_scalar(value, lane)
        return found

    def _created_scalar(self, value: SSAValue, lane: int) -> SSAValue:
        code, op = self.code, value.owner
        if value in self._arguments:
            argument = self._arguments[value]
            assert argument is not None
            if not isinstance(argument.type, VectorType):
                return argument
            return code.add_op(vector.ExtractOp(argument, [lane], value.type))
        if isinstance(op, linalg.ops.IndexOp):
            more: Index = lane
            if lane and not isinstance(self.active, int):
                more = code.minimum(code.add(self.active, -1), lane)
            return code.value(self.index(op.dim.value.data, more))
        if isinstance(op, memref.LoadOp):
            return code.load(self.buffers[op.memref], self._location(op, lane), op.results[0].type)
        return copied(code, op, [self._scalar(v, lane) for v in op.operands], 1)  # type: ignore[union-attr, arg-type]

    def _location(self, op: memref.LoadOp | memref.StoreOp, lane: int) -> Where:
        return location_of(self.code, op, [self._scalar(v, lane) for v in op.indices])
