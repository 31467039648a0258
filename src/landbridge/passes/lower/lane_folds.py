"""Combines the lanes of several vectors at once: one shuffle tree, whose result has one lane for each vector.

Summed one by one, each of 16 vectors takes four shuffles and four additions, which use fewer lanes from step to step.
Here a step makes one vector of two: it adds the upper halves of their sums to the lower halves. 15 steps of two
shuffles and one addition then sum 16 vectors. Every vector is summed in the same order, however many there are: lane i
and lane i + n/2 first. Therefore a row has the same sum in a tile and alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from landbridge.passes.lower.code import Code
from landbridge.passes.lower.transposed import shuffled
from landbridge.targets.machine import SHUFFLE_BITS

Combine: TypeAlias = Callable[[SSAValue, SSAValue], SSAValue]
#: The numbers of the vectors whose partial results a vector has, in the order of its lanes.
_Order: TypeAlias = tuple[int, ...]


class LaneFolds:
    """Combines all lanes of each of ``count`` vectors, which are put in any order: two of them are combined as soon as
    both are there, so that few wait in registers.
    """

    def __init__(self, code: Code, count: int, lanes: int, combine: Combine) -> None:
        """``lanes`` of each vector, a power of two."""
        self._lanes = lanes
        self._trees = [_FoldTree(code, min(lanes, count - i), lanes, combine) for i in range(0, count, lanes)]

    def put(self, number: int, value: SSAValue) -> None:
        """Take ``value`` as the vector ``number``, each once."""
        tree, lane = divmod(number, self._lanes)
        self._trees[tree].put(lane, value)

    def results(self) -> list[SSAValue]:
        """Returns vectors with a lane for each vector that was put, in the order of their numbers; all must have been.

        Each has as many lanes as a vector that was put, except the last: its lanes are the least power of two that
        suffices. The lanes of a single vector that is left are combined to a scalar.
        """
        return [tree.result() for tree in self._trees]


class _FoldTree:
    """Makes one vector of at most as many vectors as each has lanes."""

    def __init__(self, code: Code, count: int, lanes: int, combine: Combine) -> None:
        self._code, self._count, self._lanes, self._combine = code, count, lanes, combine
        self._levels = (count - 1).bit_length()
        #: Vectors that wait for their neighbour, by level and place.
        self._waiting: dict[tuple[int, int], SSAValue] = {}

    def put(self, lane: int, value: SSAValue) -> None:
        """Take the vector whose lanes become ``lane`` of the result; the last one also for those that are missing to a
        power of two.
        """
        ty = value.type
        assert isinstance(ty, VectorType)
        piece = min(max(1, SHUFFLE_BITS // int(ty.element_type.bitwidth)), self._lanes)
        places = _result_order(self._lanes, 1 << self._levels, piece)
        for each in range(lane, 1 << self._levels if lane == self._count - 1 else lane + 1):
            self._put(places[each], value, piece)

    def _put(self, place: int, value: SSAValue, piece: int) -> None:
        level, lanes = 0, self._lanes
        while (other := self._waiting.pop((level, place ^ 1), None)) is not None:
            low, high = _halves(lanes, lanes >> level, piece, are_two=True)
            first, second = (other, value) if place % 2 else (value, other)
            value = self._both(first, second, low, high)
            level, place = level + 1, place // 2
        self._waiting[level, place] = value

    def _both(self, first: SSAValue, second: SSAValue, low: Sequence[int], high: Sequence[int]) -> SSAValue:
        return self._combine(shuffled(self._code, first, second, low), shuffled(self._code, first, second, high))

    def result(self) -> SSAValue:
        """Returns the one vector, or a scalar for a single vector."""
        value, lanes, width = self._waiting[self._levels, 0], self._lanes, self._lanes >> self._levels
        ty = value.type
        assert isinstance(ty, VectorType)
        piece = min(max(1, SHUFFLE_BITS // int(ty.element_type.bitwidth)), lanes)
        while width > 1:
            if width == 2 and self._levels == 0:
                halves = (self._code.add_op(vector.ExtractOp(value, [at], ty.element_type)) for at in (0, 1))
                return self._combine(*halves)
            low, high = _halves(lanes, width, piece, are_two=False)
            value = self._both(value, value, low, high)
            lanes, width = len(low), width // 2
        return value


def _result_order(lanes: int, count: int, piece: int) -> _Order:
    """Returns for each lane of the result the place of the vector that it is the sum of, among ``count`` vectors."""
    orders: list[_Order] = [(i,) for i in range(count)]
    width = lanes
    while len(orders) > 1:
        within = piece // width or len(orders[0])
        orders = [_merged(a, b, within) for a, b in zip(orders[::2], orders[1::2], strict=True)]
        width //= 2
    return orders[0]


def _merged(a: _Order, b: _Order, within: int) -> _Order:
    """Returns the order in which a step puts two vectors together: runs of ``within`` of one and of the other."""
    runs = range(0, len(a), within)
    return tuple(number for at in runs for each in (a, b) for number in each[at : at + within])


def _halves(lanes: int, width: int, piece: int, are_two: bool) -> tuple[list[int], list[int]]:
    """Returns the shuffle masks that take the lower and the upper halves of runs of ``width`` lanes: those of two
    vectors, or of one.

    Where the halves of vectors longer than a piece stay in their lanes if the first mask takes the upper halves of the
    second vector, it does, and the second mask takes the lower ones. The first is then a blend, which any vector pipe
    executes, while shuffles compete for one or two. The sums are the same.
    """
    half = width // 2
    starts = list(range(0, lanes, width))
    within = piece // width or len(starts)
    runs = [starts[i : i + within] for i in range(0, len(starts), within)]
    order = [at + more for run in runs for more in ((0, lanes) if are_two else (0,)) for at in run]
    low, high = ([at + by + i for at in order for i in range(half)] for by in (0, half))
    if not are_two or lanes == piece:
        return low, high
    blend = [i + half if i >= lanes else i for i in low]
    stays = all(i % lanes == lane for lane, i in enumerate(blend))
    return (blend, [i - half if i >= lanes else i for i in high]) if stays else (low, high)


def vector_lanes(value: SSAValue) -> int:
    """Returns the lanes of a vector; 1 for a scalar."""
    return value.type.get_shape()[0] if isinstance(value.type, VectorType) else 1
