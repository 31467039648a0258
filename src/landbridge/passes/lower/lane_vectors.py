"""Loads vectors of an operand whose elements are contiguous or strided along the lanes, and may be padded at
both ends.
"""

from __future__ import annotations

from xdsl.ir import Attribute, SSAValue

from landbridge.passes.lower.code import Code, Index, Where, zero
from landbridge.passes.lower.transposed import gathered
from landbridge.records import record
from landbridge.sizes.size import Extent


@record(frozen=True)
class Ends:
    """The axis that a vector may leave: the position of the first lane on it, its extent, and the value outside."""

    first: Index
    extent: Extent
    fill: Attribute


@record(frozen=True)
class LaneVector:
    """``lanes`` elements from ``where`` on, with a stride of ``step`` elements; only the first ``active`` are read (0
    for all).
    """

    buffer: SSAValue
    where: Where
    element: Attribute
    lanes: int
    step: int
    active: Index

    def load(self, code: Code, ends: Ends | None) -> SSAValue:
        """Load the vector. Reads nothing before its first and after its last element, and nothing outside ``ends``."""
        if self.step == 1 and ends is None:
            return code.load_vector(self.buffer, self.where, self.element, self.lanes, self.active)
        span = (self.lanes - 1) * self.step + 1
        starts = list(range(0, span, self.lanes))
        if ends is None and isinstance(self.active, int) and not self.active:
            starts[-1] = span - self.lanes  # the last part ends with the last lane
        parts = [self._part(code, start, ends) for start in starts]
        if self.step == 1:
            return parts[0]
        wanted = range(0, span, self.step)
        part_of = [max(k for k, start in enumerate(starts) if start <= at) for at in wanted]
        return gathered(code, parts, [(k, at - starts[k]) for k, at in zip(part_of, wanted, strict=True)])

    def _part(self, code: Code, start: int, ends: Ends | None) -> SSAValue:
        """Load contiguous elements from ``start`` on."""
        where, lanes = moved(code, self.where, start), self.lanes
        if ends is not None:
            first = code.add(ends.first, start)
            past = code.add(ends.extent, code.mul(first, -1))
            low = code.maximum(code.mul(first, -1), 0)
            return code.load_between(self.buffer, where, self.element, lanes, low, past, ends.fill)
        if not isinstance(self.active, int):
            left = code.add(code.mul(self.active, self.step), 1 - self.step - start)
            return code.load_vector(self.buffer, where, self.element, lanes, left)
        left = (self.active - 1) * self.step + 1 - start if self.active else lanes
        if left <= 0:
            return code.splat(zero(self.element), self.element, lanes)
        return code.load_vector(self.buffer, where, self.element, lanes, left if left < lanes else 0)


def moved(code: Code, where: Where, by: int) -> Where:
    """Returns the location ``by`` elements after ``where``."""
    if isinstance(where, tuple):
        return (*where[:-1], code.add(where[-1], by))
    return code.add(where, by)
