"""Running sums and other scans: a single stage whose state each step combines with a term, computed by numpy at
once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from landbridge.interpreter.accesses import Array, OperandAccess, Ranges, counters_of
from landbridge.interpreter.bodies import StageBody, is_unrounded_product
from landbridge.interpreter.reductions import Ufunc, combiner_of
from landbridge.ir.stages import Generic

#: The most iterations whose values are held at once.
_AT_ONCE = 1 << 20


class RunningStage:
    """The only stage of ``lb.steps``, in which ``state`` becomes ``ufunc(state, term)``, and nothing else is carried.

    Sums of floats are accumulated in f64, as in reductions: a schedule may add up the terms of a vector before others.
    """

    def __init__(
        self, g: Generic, reads: Sequence[OperandAccess], writes: Sequence[OperandAccess], body: StageBody
    ) -> None:
        self._g, self._reads, self._writes, self._body = g, reads, writes, body
        self._ufunc: Ufunc = None
        targets = {operand.buffer for operand in g.outs}
        carried = [i for i, operand in enumerate(g.ins) if operand.buffer in targets]
        carried_outputs = [i for i, access in enumerate(writes) if 0 not in access.loops]
        if g.reduces or body.stores or len(carried) != 1 or len(carried_outputs) != 1:
            return
        (self._state,), (self._target,) = carried, carried_outputs
        source, target = g.ins[self._state], g.outs[self._target]
        if source.buffer is not target.buffer or source.map != target.map or not writes[self._target].is_linear:
            return
        last = g.body.last_op
        assert last is not None
        found = combiner_of(source.scalar, last.operands[self._target])
        if found is None or is_unrounded_product(found.term) or _depends(found.term, source.scalar):
            return
        self._ufunc, self._in_double = found.ufunc, found.in_double
        self._term = StageBody(g.body, [found.term])

    @property
    def is_found(self) -> bool:
        """Returns whether the stage is of this kind; else it cannot run this way."""
        return self._ufunc is not None

    def run(self, buffers: dict[SSAValue, Array], ranges: Ranges) -> None:
        """Run all steps, which are the first of ``ranges``."""
        first, last = ranges[0]
        others = 1
        for start, stop in ranges[1:]:
            others *= stop - start
        step = max(1, _AT_ONCE // max(1, others))
        for begin in range(first, last, step):
            self._run_part(buffers, [(begin, min(begin + step, last)), *ranges[1:]])

    def _run_part(self, buffers: dict[SSAValue, Array], ranges: Ranges) -> None:
        g, counters = self._g, counters_of(ranges)
        arguments: list[Array | None] = [
            access.read(buffers[operand.buffer], ranges) for operand, access in zip(g.ins, self._reads, strict=True)
        ]
        state = arguments[self._state]
        assert state is not None
        unused = [None] * len(g.outs)
        (term,) = self._term.run([*arguments, *unused], buffers, counters)
        shape = [stop - start for start, stop in ranges]
        terms = np.broadcast_to(term, shape)
        begun = np.broadcast_to(state, [1, *shape[1:]])
        retained_in = np.float64 if self._in_double else state.dtype
        states = self._ufunc.accumulate(np.concatenate([begun, terms]), axis=0, dtype=retained_in).astype(state.dtype)
        arguments[self._state] = states[:-1]
        values = self._body.run([*arguments, *unused], buffers, counters)
        for number, (operand, access) in enumerate(zip(g.outs, self._writes, strict=True)):
            value = states[-1:] if number == self._target else np.asarray(values[number])
            access.write(buffers[operand.buffer], ranges, value)


def _depends(value: SSAValue, on: SSAValue) -> bool:
    """Returns whether ``value`` is computed from ``on``."""
    if value is on:
        return True
    owner = value.owner
    operands = getattr(owner, "operands", ())
    return any(_depends(operand, on) for operand in operands)
