"""NonMaxSuppression: the best boxes of each class, without those that overlap a better one.

Classes are independent. The scores of a class above the threshold become keys, ordered by score and, for equal scores,
by number. A heap returns them one by one, so that no more are sorted than it takes to find the requested number of
boxes. Only a run knows the number of rows: kernels write into buffers for the largest number, then the program is cut,
and later operations have the rows as a dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from landbridge.ir.loop_builder import LoopBuilder
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.legal import one_of
from landbridge.ops.max_heap import MaxHeap
from landbridge.ops.rules import rules
from landbridge.records import record
from landbridge.sizes.size import LARGEST_EXTENT, Extent, largest, smallest

#: The low half of a key is this number minus the box number.
_LAST = 2**31 - 1


@record(frozen=True, eq=False)
class _Suppression:
    """One NonMaxSuppression node. ``limits`` has those of its operands that are not constant or left out: ``most``
    boxes of a class, the ``overlap`` above which a box is removed, and the ``least`` score. ``capacity`` is the largest
    number of boxes that a class can select.
    """

    batch: Extent
    classes: Extent
    boxes: Extent
    capacity: Extent
    by_center: bool
    limits: dict[str, SSAValue]

    @property
    def groups(self) -> Extent:
        """Returns ``batch * classes``, the number of classes that are processed independently."""
        return self.batch * self.classes


@rules(
    "boxes: B N 4",
    "scores: B C N",
    "max_output_boxes_per_class?: () | 1",
    "iou_threshold?: () | 1",
    "score_threshold?: () | 1",
    attributes={"center_point_box": one_of(0, 1, default=0)},
)
@kernel("", "NonMaxSuppression")
@accuracy(EXACT)
def non_max_suppression(
    c: OpContext,
    boxes: Operand,
    scores: Operand,
    most: Operand | None = None,
    overlap: Operand | None = None,
    least: Operand | None = None,
) -> Operand:
    """Computes rows (batch, class, box), int64 [rows, 3], ordered by batch, class and falling score. A box is removed
    where its overlap with a better one of the class is above the limit.
    """
    batch, classes, count = c.shape(scores)
    known = [0] if most is None else c.whole(most)
    capacity: Extent = count
    if known is not None and isinstance(known[0], int):
        capacity, most = smallest(count, max(known[0], 0)), None
    if 0 in (batch, classes, count, capacity):
        return np.zeros((0, 3), np.int64)
    given = {"most": most, "overlap": overlap, "least": least}
    limits = {name: c.value(x) for name, x in given.items() if x is not None}
    node = _Suppression(batch, classes, count, capacity, bool(c.attribute("center_point_box", 0)), limits)
    selected, counts = _selected(c, node, boxes, scores)
    starts, total = _starts(c, node, counts)
    most_rows: Extent = node.groups * capacity
    high = most_rows if isinstance(most_rows, int) else most_rows.high
    rows = c.extent_read_from(total, LARGEST_EXTENT if high is None else min(high, LARGEST_EXTENT))
    return _rows(c, node, selected, starts, rows)


def _selected(c: OpContext, node: _Suppression, boxes: Operand, scores: Operand) -> Sequence[SSAValue]:
    """Returns the selected boxes of each class, the best first, int32 [groups, capacity], and their counts, int64
    [groups].
    """
    names = list(node.limits)

    def build(p: PrimBuilder) -> None:
        keys = p.temp([largest(node.boxes, 1) + 1], "int64")
        corners = p.temp([largest(node.capacity, 1), 4], "float32")

        def of_class(s: LoopBuilder, group: Value, *memrefs: SSAValue) -> None:
            buffers = [BodyBuffer(each, p.dtype(each)) for each in memrefs]
            _Class(s, node, group, buffers, names).write()

        p.forall(node.groups, [*p.inputs, *p.outputs, keys, corners], of_class)

    flat = c.reshape(scores, (node.groups, node.boxes))
    operands = [c.value(boxes), c.value(flat), *node.limits.values()]
    outputs: list[tuple[Sequence[Extent], str]] = [
        ((node.groups, largest(node.capacity, 1)), "int32"),
        ((node.groups,), "int64"),
    ]
    return c.g.call("suppressed", operands, outputs, build)


class _Class:
    """Writes the code that selects boxes of one class. ``buffers`` are boxes, scores, those of ``names``, the results
    and the memory for keys and for the corners of selected boxes."""

    def __init__(
        self, s: LoopBuilder, node: _Suppression, group: Value, buffers: Sequence[BodyBuffer], names: Sequence[str]
    ) -> None:
        self.s, self.exact, self.node, self.group = s, s.uncontracted(), node, group
        self.boxes, self.scores = buffers[:2]
        self.limits = dict(zip(names, buffers[2:-4], strict=True))
        self.selected, self.counts, keys, self.corners = buffers[-4:]
        self.heap = MaxHeap(s, keys, largest(node.boxes, 1))
        self.batch = s.inside(s.binary("div", group, node.classes), node.batch)

    def write(self) -> None:
        """Emits the code that selects boxes of the class and stores their number."""
        s, node = self.s, self.node
        none = s.const(0, "index")
        (retained,) = s.branch(s.const(node.boxes, "int64") > 0, lambda: [self._retained()], lambda: [none])
        self.counts.store(s, [self.group], s.cast(retained, "int64"))

    def _retained(self) -> Value:
        """Emits the selection of boxes; returns the number of selected ones."""
        s, node = self.s, self.node
        count = self._candidates()
        self.heap.order(count)
        most = s.const(node.capacity, "index")
        if "most" in self.limits:
            given = s.maximum(self.limits["most"].load(s, _only(self.limits["most"])), 0)
            most = s.cast(s.minimum(given, s.const(node.capacity, "int64")), "index")

        def test(count: Value, retained: Value) -> tuple[Value, Sequence[Value]]:
            return (count > 0) & (retained < most), [count, retained]

        def next_best(count: Value, retained: Value) -> Sequence[Value]:
            key = self.heap.take(count)
            box = s.inside(s.cast(s.const(_LAST, "int64") - (key & _LAST), "index"), node.boxes)
            corners = self._corners(box)

            def keep() -> Sequence[Value]:
                location = s.inside(retained, largest(node.capacity, 1))
                for i, corner in enumerate(corners):
                    self.corners.store(s, [location, i], corner)
                self.selected.store(s, [self.group, location], s.cast(box, "int32"))
                return [retained + 1]

            (after,) = s.branch(self._overlaps(corners, retained), lambda: [retained], keep)
            return [count - 1, after]

        return s.repeat([count, s.const(0, "index")], test, next_best)[1]

    def _candidates(self) -> Value:
        """Emits a key for each score above the threshold; returns their number."""
        s = self.s
        least = self._limit("least")

        def candidate(box: Value, count: Value) -> Sequence[Value]:
            score = self.scores.load(s, [self.group, box])
            self.heap.put(count, self._key(score, box))
            return [count + (1 if least is None else s.cast(s.cast(score > least, "int64"), "index"))]

        return s.loop(0, self.node.boxes, [s.const(0, "index")], candidate)[0]

    def _key(self, score: Value, box: Value) -> Value:
        """Returns an integer that is larger for better boxes: NaN is the lowest of all scores, and both zeros are
        equal.
        """
        s = self.s
        bits, lowest = s.bits(score), s.const(-(2**31), "int32")
        number = s.select(bits < 0, lowest - bits, bits)
        if "least" not in self.limits:
            number = s.select(score.ne(score), lowest, number)
        return s.binary("shl", s.cast(number, "int64"), 32) | (s.const(_LAST, "int64") - s.cast(box, "int64"))

    def _limit(self, name: str) -> Value | None:
        buffer = self.limits.get(name)
        return None if buffer is None else buffer.load(self.s, _only(buffer))

    def _corners(self, box: Value) -> Sequence[Value]:
        """Returns the smallest and the largest coordinates of ``box``."""
        s = self.exact
        a, b, c, d = (self.boxes.load(s, [self.batch, box, i]) for i in range(4))
        if self.node.by_center:
            wide, high = c / 2.0, d / 2.0
            return [a - wide, b - high, a + wide, b + high]
        return [_less(s, a, c), _less(s, b, d), _more(s, a, c), _more(s, b, d)]

    def _overlaps(self, corners: Sequence[Value], retained: Value) -> Value:
        """Returns whether the overlap of a box of these ``corners`` with one of the ``retained`` boxes is above the
        limit.
        """
        s, limit = self.s, self._limit("overlap")

        def test(number: Value, overlaps: Value) -> tuple[Value, Sequence[Value]]:
            return (number < retained) & s.logical_not(overlaps), [number, overlaps]

        def compare(number: Value, _: Value) -> Sequence[Value]:
            location = s.inside(number, largest(self.node.capacity, 1))
            other = [self.corners.load(s, [location, i]) for i in range(4)]
            return [number + 1, self._is_above(corners, other, limit)]

        none = s.const(False, "bool")
        return s.repeat([s.const(0, "index"), none], test, compare)[1]

    def _is_above(self, a: Sequence[Value], b: Sequence[Value], limit: Value | None) -> Value:
        """Returns whether intersection over union of both boxes is above ``limit``."""
        s = self.exact
        low = [_more(s, x, y) for x, y in zip(a[:2], b[:2], strict=True)]
        high = [_less(s, x, y) for x, y in zip(a[2:], b[2:], strict=True)]
        sides = [b - a for a, b in zip(low, high, strict=True)]

        def compare() -> Sequence[Value]:
            common = sides[0] * sides[1]
            areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
            either = areas[0] + areas[1] - common
            has_area = (common > 0.0) & (areas[0] > 0.0) & (areas[1] > 0.0) & (either > 0.0)
            return [has_area & (common / either > (0.0 if limit is None else limit))]

        meet = (high[0] > low[0]) & (high[1] > low[1])
        return self.s.branch(meet, compare, lambda: [self.s.const(False, "bool")])[0]


def _less(s: ScalarBuilder, a: Value, b: Value) -> Value:
    return s.select(a < b, a, b)


def _more(s: ScalarBuilder, a: Value, b: Value) -> Value:
    return s.select(a > b, a, b)


def _only(buffer: BodyBuffer) -> list[int]:
    """Returns the indices of the element of a tensor of one."""
    return [0] * buffer.rank


def _starts(c: OpContext, node: _Suppression, counts: SSAValue) -> Sequence[SSAValue]:
    """Returns the first row of each class in the result, int64 [groups], and the number of rows, int64 [1]."""

    def build(p: PrimBuilder) -> None:
        def add_up(s: LoopBuilder, _: Value, *memrefs: SSAValue) -> None:
            counts, starts, total = (BodyBuffer(each, "int64") for each in memrefs)

            def start(group: Value, row: Value) -> Sequence[Value]:
                starts.store(s, [group], row)
                return [row + counts.load(s, [group])]

            total.store(s, [0], s.loop(0, node.groups, [s.const(0, "int64")], start)[0])

        p.forall(1, [*p.inputs, *p.outputs], add_up)

    return c.g.call("suppressed_starts", [counts], [((node.groups,), "int64"), ((1,), "int64")], build)


def _rows(c: OpContext, node: _Suppression, selected: SSAValue, starts: SSAValue, rows: Extent) -> SSAValue:
    """Returns the ``rows`` of the result: int64 (rows, 3)."""

    def build(p: PrimBuilder) -> None:
        def row(s: LoopBuilder, number: Value, *memrefs: SSAValue) -> None:
            selected, starts, result = (BodyBuffer(each, p.dtype(each)) for each in memrefs)
            at = s.cast(number, "int64")

            def test(low: Value, high: Value) -> tuple[Value, Sequence[Value]]:
                return high - low > 1, [low, high]

            def halve(low: Value, high: Value) -> Sequence[Value]:
                middle = s.binary("div", low + high, 2)
                later = starts.load(s, [s.inside(middle, node.groups)]) > at
                return [s.select(later, low, middle), s.select(later, middle, high)]

            ends: list[Any] = [s.const(0, "index"), s.const(node.groups, "index")]
            group = s.inside(s.repeat(ends, test, halve)[0], node.groups)
            location = s.inside(s.cast(at - starts.load(s, [group]), "index"), largest(node.capacity, 1))
            found = [s.binary("div", group, node.classes), s.binary("rem", group, node.classes)]
            for column, value in enumerate([*found, selected.load(s, [group, location])]):
                result.store(s, [number, column], s.cast(value, "int64"))

        p.forall(rows, [*p.inputs, *p.outputs], row)

    return c.g.call("suppressed_rows", [selected, starts], [((rows, 3), "int64")], build)[0]
