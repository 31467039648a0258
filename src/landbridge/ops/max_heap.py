"""A heap of integers in a kernel's memory, which gives the largest first."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.ir.loop_builder import LoopBuilder
from landbridge.ir.scalars import Value
from landbridge.ops.context import BodyBuffer
from landbridge.sizes.size import Extent

#: Less than all keys.
_LEAST = -(2**63)


class MaxHeap:
    """Writes code on ``keys``, int64, which has one element more than the ``capacity`` of the heap.

    Key i is no smaller than keys 2 i + 1 and 2 i + 2; behind the last one is what is less than all keys.
    """

    def __init__(self, s: LoopBuilder, keys: BodyBuffer, capacity: Extent) -> None:
        self._s, self._keys, self._extent = s, keys, capacity + 1

    def put(self, location: Value, key: Value) -> None:
        """Stores ``key`` at ``location``, an index; ``order`` makes a heap of what was put."""
        self._keys.store(self._s, [self._s.inside(location, self._extent)], key)

    def order(self, count: Value) -> None:
        """Makes a heap of the first ``count`` keys."""
        s = self._s
        self.put(count, s.const(_LEAST, "int64"))
        half = s.binary("shr", s.cast(count, "int64"), 1)

        def sink(number: Value) -> Sequence[Value]:
            root = s.cast(half - s.cast(number, "int64") - 1, "index")
            self._sink(root, self._at(root), count)
            return ()

        s.loop(0, s.cast(half, "index"), [], sink)

    def take(self, count: Value) -> Value:
        """Removes the largest of ``count`` keys, at least 1, and returns it."""
        s = self._s
        largest, last = self._keys.load(s, [0]), count - 1
        moved = self._at(last)
        self.put(last, s.const(_LEAST, "int64"))
        self._sink(s.const(0, "index"), moved, last)
        return largest

    def _at(self, location: Value) -> Value:
        return self._keys.load(self._s, [self._s.inside(location, self._extent)])

    def _sink(self, location: Value, key: Value, count: Value) -> None:
        """Puts ``key`` at ``location`` or below it, where larger keys move up to."""
        s = self._s

        def test(hole: Value) -> tuple[Value, Sequence[Value]]:
            left = hole + hole + 1
            a, b = self._at(left), self._at(left + 1)
            child, larger = left + s.cast(s.cast(b > a, "int64"), "index"), s.maximum(a, b)
            return (left < count) & (larger > key), [hole, child, larger]

        def rise(hole: Value, child: Value, larger: Value) -> Sequence[Value]:
            self.put(hole, larger)
            return [child]

        hole, *_ = s.repeat([location], test, rise)
        self.put(hole, key)
