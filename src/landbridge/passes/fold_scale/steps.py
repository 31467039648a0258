"""Runs of arithmetic with constants in the body of a stage, as one ``x * scale + shift``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Operation, SSAValue

from landbridge.ir.stages import Generic

#: float64 with one axis a loop of the stage, of extent 1 where the value does not depend on the loop.
Aligned: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Constants: TypeAlias = Callable[[SSAValue], Aligned | None]

#: What a division costs in multiplications.
_DIVISION = 8


@dataclass(frozen=True)
class Steps:
    """Operations of a float32 body, each the only user of the one before: ``root * scale + shift``."""

    root: SSAValue
    ops: tuple[Operation, ...]
    scale: Aligned
    shift: Aligned

    @property
    def cost(self) -> int:
        """What the operations cost as they are."""
        return sum(_DIVISION if isinstance(op, arith.DivfOp) else 1 for op in self.ops)


def multiplies(scale: Aligned) -> bool:
    """Whether a scale is not one."""
    return bool((scale != 1).any())


def shifts(shift: Aligned) -> bool:
    """Whether a shift is not zero."""
    return bool((shift != 0).any())


def steps_of(stage: Generic, constant: Constants) -> list[Steps]:
    """The longest runs in the body of ``stage``; ``constant`` gives the scalars that are known."""
    found: list[Steps] = []
    taken: set[Operation] = set()
    for op in stage.body.ops:
        value = None if op in taken else _variable(op, constant)
        if value is None:
            continue
        one = np.ones((1,) * len(stage.extents))
        run, scale, shift = [], one, one * 0
        at: Operation | None = op
        current = value
        while at is not None and (following := _apply(at, current, scale, shift, constant)) is not None:
            scale, shift = following
            run.append(at)
            current = at.results[0]
            use = current.get_unique_use()
            at = None if use is None else use.operation
        taken.update(run)
        if run and np.isfinite(scale).all() and np.isfinite(shift).all() and (scale != 0).all():
            found.append(Steps(value, tuple(run), scale, shift))
    return found


def _variable(op: Operation, constant: Constants) -> SSAValue | None:
    """The operand of arithmetic with a constant that is no constant."""
    if isinstance(op, arith.NegfOp):
        return op.operand
    if not isinstance(op, arith.MulfOp | arith.AddfOp | arith.SubfOp | arith.DivfOp):
        return None
    known = [constant(v) is not None for v in op.operands]
    if sum(known) != 1 or not isinstance(op.results[0].type, Float32Type):
        return None
    if isinstance(op, arith.DivfOp) and known[0]:
        return None
    return op.operands[known.index(False)]


def _apply(
    op: Operation, value: SSAValue, scale: Aligned, shift: Aligned, constant: Constants
) -> tuple[Aligned, Aligned] | None:
    """Scale and shift once ``op`` has used ``value``; None when that is no such step or makes constants larger."""
    if _variable(op, constant) is not value:
        return None
    if isinstance(op, arith.NegfOp):
        return -scale, -shift
    c = next(k for v in op.operands if (k := constant(v)) is not None)
    if np.broadcast(shift, c).size > max(shift.size, c.size):
        return None
    with np.errstate(all="ignore"):
        if isinstance(op, arith.MulfOp):
            return scale * c, shift * c
        if isinstance(op, arith.DivfOp):
            return scale / c, shift / c
        if isinstance(op, arith.AddfOp):
            return scale, shift + c
        return (scale, shift - c) if op.operands[0] is value else (-scale, c - shift)
