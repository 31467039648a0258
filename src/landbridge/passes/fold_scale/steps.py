"""Runs of arithmetic with constants in the body of a stage, as one ``x * scale + shift``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Operation, SSAValue

from landbridge.ir.stages import Generic
from landbridge.records import record

#: float64 with one axis a loop of the stage, of extent 1 where the value does not depend on the loop.
Aligned: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Constants: TypeAlias = Callable[[SSAValue], Aligned | None]

#: What a division costs in multiplications.
_DIVISION = 8
#: How much larger or smaller than ``x`` and the result a value between may be: where it would overflow, or lose digits
#: as a subnormal number, and the one step does not, is that near the ends of the range.
_RANGE = 2.0**16
#: How many times the sum of constants one of them may be. More cancels, as in rounding by adding a large number.
_CANCELS = 2.0**10
_F32 = np.finfo(np.float32)


@record(frozen=True, eq=False)
class _Line:
    """``x * scale + shift``; ``shift`` is None where nothing is added, for even a zero changes -0. And what came up on
    the way: the largest and smallest scale, and the largest constant in units of the result."""

    scale: Aligned
    shift: Aligned | None = None
    widest: Aligned | float = 1.0
    narrowest: Aligned | float = 1.0
    largest: Aligned | float = 0.0

    def times(self, c: Aligned) -> _Line:
        """Multiplied by ``c``."""
        scale = self.scale * c
        size = np.abs(scale)
        wide, narrow = np.maximum(self.widest, size), np.minimum(self.narrowest, size)
        return _Line(scale, None if self.shift is None else self.shift * c, wide, narrow, self.largest * np.abs(c))

    def plus(self, c: Aligned) -> _Line:
        """With ``c`` added."""
        shift = c if self.shift is None else self.shift + c
        return replace(self, shift=shift, largest=np.maximum(self.largest, np.abs(c)))

    @property
    def stands(self) -> bool:
        """Whether it gives what its steps give, but for roundings: for infinities, NaN and cancelled digits too."""
        size = np.abs(self.scale)
        inside = (size >= _F32.tiny) & (size <= _F32.max)
        inside &= (self.widest <= np.maximum(size, 1) * _RANGE) & (self.narrowest >= np.minimum(size, 1) / _RANGE)
        if self.shift is None:
            return bool(inside.all())
        total = np.abs(self.shift)
        return bool(inside.all() and (total <= _F32.max).all() and (self.largest <= total * _CANCELS).all())


@record(frozen=True, eq=False)
class Steps:
    """Operations of a float32 body, each the only user of the one before: ``root * scale + shift``, and no sum where
    ``shift`` is None."""

    root: SSAValue
    ops: tuple[Operation, ...]
    scale: Aligned
    shift: Aligned | None

    @property
    def cost(self) -> int:
        """What the operations cost as they are."""
        return sum(_DIVISION if isinstance(op, arith.DivfOp) else 1 for op in self.ops)

    @property
    def divides(self) -> bool:
        """Whether they are one division that no multiplication is as exact as."""
        kinds = [op for op in self.ops if not isinstance(op, arith.NegfOp)]
        return (
            len(kinds) == 1
            and isinstance(kinds[0], arith.DivfOp)
            and bool((np.frexp(np.abs(self.scale))[0] != 0.5).any())
        )


def multiplies(scale: Aligned) -> bool:
    """Whether a scale is not one."""
    return bool((scale != 1).any())


def steps_of(stage: Generic, constant: Constants) -> list[Steps]:
    """The longest runs in the body of ``stage``; ``constant`` gives the scalars that are known."""
    found: list[Steps] = []
    taken: set[Operation] = set()
    for op in stage.body.ops:
        value = None if op in taken else _variable(op, constant)
        if value is None:
            continue
        run, line = [], _Line(np.ones((1,) * len(stage.extents)))
        at: Operation | None = op
        current = value
        while at is not None and (following := _apply(at, current, line, constant)) is not None:
            line = following
            run.append(at)
            current = at.results[0]
            use = current.get_unique_use()
            at = None if use is None else use.operation
        taken.update(run)
        if run:
            found.append(Steps(value, tuple(run), line.scale, line.shift))
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


def _apply(op: Operation, value: SSAValue, line: _Line, constant: Constants) -> _Line | None:
    """The line once ``op`` has used ``value``; None when that is no such step, makes constants larger, or would change
    more than roundings."""
    if _variable(op, constant) is not value:
        return None
    minus = np.full((1,) * line.scale.ndim, -1.0)
    if isinstance(op, arith.NegfOp):
        return line.times(minus)
    c = next(k for v in op.operands if (k := constant(v)) is not None)
    before = line.scale if line.shift is None else line.shift
    if np.broadcast(before, c).size > max(before.size, c.size):
        return None
    with np.errstate(all="ignore"):
        if isinstance(op, arith.MulfOp):
            found = line.times(c)
        elif isinstance(op, arith.DivfOp):
            found = line.times(1 / c)
        elif isinstance(op, arith.AddfOp):
            found = line.plus(c)
        else:
            found = line.plus(-c) if op.operands[0] is value else line.times(minus).plus(c)
        return found if found.stands else None
