"""How much of a buffer is in use, of operators that keep what they made before in one that has room for more."""

from __future__ import annotations

from landbridge.ops.accuracy import EXACT, accuracy
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.extent_arrays import extents_array
from landbridge.ops.legal import axis_of
from landbridge.ops.registry import operator
from landbridge.ops.rules import rules
from landbridge.sizes.size import clamped, smallest


@rules("length: 1", "buffer: _ ...", attributes={"axis": axis_of("len(buffer)", default=0)})
@operator("LengthWithin", domain="landbridge")
@accuracy(EXACT)
def length_within(c: OpContext, length: Operand, buffer: Operand) -> Operand:
    """``length`` [1], from 1 to what ``buffer`` has along ``axis``: a run of another is refused."""
    room = c.shape(buffer)[c.attribute("axis", 0)]
    (asked,) = c.constant(length, "length").reshape(-1).tolist()
    within = clamped(asked, 1, room) if isinstance(room, int) else smallest(clamped(asked, 1), room)
    return extents_array([c.g.held("the steps so far with those of the run", asked, within)])
