"""Finds runs of arithmetic with constants in the body of a stage and merges them to one ``x * scale + shift``."""

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

#: float64 with one axis per loop of the stage, of extent 1 where the value does not depend on the loop.
Aligned: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Constants: TypeAlias = Callable[[SSAValue], Aligned | None]

#: The cost of a division in multiplications.
_DIVISION = 8
#: The largest ratio of an intermediate value to ``x`` or the result, in both directions. Beyond it, close to the ends
#: of the range, the steps would overflow or lose digits as subnormals where one step does not.
_RANGE = 2.0**16
#: The largest ratio of a constant to the sum of constants. Beyond it digits cancel, as in rounding by adding a large
#: number.
_CANCELS = 2.0**10
_F32 = np.finfo(np.float32)


@record(frozen=True, eq=False)
class _Line:
    """The function ``x * scale + shift``, with the largest and smallest scale on the way and the largest constant.

    ``shift`` is None if nothing is added, as even a zero changes -0. The largest constant is in units of the result.
    """

    scale: Aligned
    shift: Aligned | None = None
    widest: Aligned | float = 1.0
    narrowest: Aligned | float = 1.0
    largest: Aligned | float = 0.0

    def times(self, c: Aligned) -> _Line:
        """Returns the line multiplied by ``c``."""
        scale = self.scale * c
        size = np.abs(scale)
        wide, narrow = np.maximum(self.widest, size), np.minimum(self.narrowest, size)
        return _Line(scale, None if self.shift is None else self.shift * c, wide, narrow, self.largest * np.abs(c))

    def plus(self, c: Aligned) -> _Line:
        """Returns the line with ``c`` added."""
        shift = c if self.shift is None else self.shift + c
        return replace(self, shift=shift, largest=np.maximum(self.largest, np.abs(c)))

    @property
    def stands(self) -> bool:
        """Returns whether the line equals its steps except for rounding, also for infinities, NaN and cancelled
        digits."""
        size = np.abs(self.scale)
        inside = (size >= _F32.tiny) & (size <= _F32.max)
        inside &= (self.widest <= np.maximum(size, 1) * _RANGE) & (self.narrowest >= np.minimum(size, 1) / _RANGE)
        if self.shift is None:
            return bool(inside.all())
        total = np.abs(self.shift)
        return bool(inside.all() and (total <= _F32.max).all() and (self.largest <= total * _CANCELS).all())


@record(frozen=True, eq=False)
class Steps:
    """A run of operations of a float32 body, each the only user of the previous one: ``root * scale + shift``.

    There is no sum if ``shift`` is None.
    """

    root: SSAValue
    ops: tuple[Operation, ...]
    scale: Aligned
    shift: Aligned | None

    @property
    def cost(self) -> int:
        """Returns the cost of the unmerged operations."""
        return sum(_DIVISION if isinstance(op, arith.DivfOp) else 1 for op in self.ops)

    @property
    def divides(self) -> bool:
        """Returns whether they are one division that no multiplication replaces exactly."""
        kinds = [op for op in self.ops if not isinstance(op, arith.NegfOp)]
        return (
            len(kinds) == 1
            and isinstance(kinds[0], arith.DivfOp)
            and bool((np.frexp(np.abs(self.scale))[0] != 0.5).any())
        )


def multiplies(scale: Aligned) -> bool:
    """Returns whether a scale differs from one."""
    return bool((scale != 1).any())


def steps_of(stage: Generic, constant: Constants) -> list[Steps]:
    """Returns the longest runs in the body of ``stage``; ``constant`` returns the scalars that are known."""
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
    """Returns the operand that is no constant, of float32 arithmetic with a constant."""
    if not op.results or not isinstance(op.results[0].type, Float32Type):
        return None
    if isinstance(op, arith.NegfOp):
        return op.operand
    if not isinstance(op, arith.MulfOp | arith.AddfOp | arith.SubfOp | arith.DivfOp):
        return None
    known = [constant(v) is not None for v in op.operands]
    if sum(known) != 1:
        return None
    if isinstance(op, arith.DivfOp) and known[0]:
        return None
    return op.operands[known.index(False)]


def _apply(op: Operation, value: SSAValue, line: _Line, constant: Constants) -> _Line | None:
    """Returns the line after ``op`` has used ``value``.

    Returns None if ``op`` is no such step, enlarges constants, or would change more than rounding.
    """
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
