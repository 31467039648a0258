"""Scalar code with loops and branches, ``lb.forall``, run one operation at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import linalg, memref, scf
from xdsl.ir import Block, Operation, SSAValue

from landbridge.ir.prim_ops import ForallOp
from tests.ir.interpreter_scalars import Grid, evaluate_one

Array: TypeAlias = np.ndarray[Any, Any]


def run_forall(op: ForallOp, env: dict[SSAValue, Array]) -> None:
    """All iterations, the last first: they are independent. ``env`` holds the arrays of the buffers."""
    number, *inside = op.body.block.args
    buffers = {a: env[b] for a, b in zip(inside, op.buffers, strict=True)}
    for iteration in reversed(range(op.iterations)):
        with np.errstate(all="ignore"):
            _Iteration(buffers, {number: np.asarray(iteration)}).operations(op.body.block.ops)


class _Iteration:
    def __init__(self, buffers: dict[SSAValue, Array], known: dict[SSAValue, Array]) -> None:
        self._known, self._grid = known, Grid({}, buffers, [])

    def operations(self, ops: Any) -> None:
        for op in ops:
            self._operation(op)

    def _block(self, block: Block, arguments: Sequence[Array] = ()) -> list[Array]:
        """What its terminator hands on."""
        self._known.update(zip(block.args, arguments, strict=True))
        *ops, last = block.ops
        self.operations(ops)
        return self._values(last.operands)

    def _values(self, values: Sequence[SSAValue]) -> list[Array]:
        return [self._known[v] for v in values]

    def _operation(self, op: Operation) -> None:
        match op:
            case memref.StoreOp():
                where = tuple(int(i) for i in self._values(op.indices))
                array = self._grid.buffers[op.memref]
                assert all(0 <= i < e for i, e in zip(where, array.shape, strict=True)), (where, array.shape)
                array[where] = self._known[op.value]
                return
            case linalg.ops.FillOp():
                self._grid.buffers[op.outputs[0]][...] = self._known[op.inputs[0]]
                return
            case scf.ForOp():
                low, high, step, *results = self._values(op.operands)
                for i in range(int(low), int(high), int(step)):
                    results = self._block(op.body.block, [np.asarray(i), *results])
            case scf.WhileOp():
                state = self._values(op.arguments)
                while True:
                    condition, *results = self._block(op.before_region.block, state)
                    if not condition:
                        break
                    state = self._block(op.after_region.block, results)
            case scf.IfOp():
                region = op.true_region if self._known[op.cond] else op.false_region
                results = self._block(region.block) if region.blocks else []
            case _:
                results = [evaluate_one(op, self._known.__getitem__, self._grid)]
        # A loaded element is a copy: what is stored there later does not change it.
        self._known.update(zip(op.results, map(np.array, results), strict=True))
