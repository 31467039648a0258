"""TopK: the first elements of rows in order, found among the best of groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

from xdsl.ir import SSAValue

from landbridge.errors import ShapeError
from landbridge.ir.prim_builder import Access, PrimBuilder
from landbridge.ir.scalar_dtypes import is_float
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.size_exprs import extent_expr
from landbridge.ops.accuracy import EXACT, accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.gather import as_index
from landbridge.ops.legal import at_least, axis_of, one_of
from landbridge.ops.reduce import reduced_access
from landbridge.ops.registry import operator
from landbridge.ops.rules import rules
from landbridge.sizes.size import Extent, Size, likely

#: So few elements are compared each with each: what groups would save is less than what they cost.
_FEW = 128
#: The longest open extent that groups are made for; of longer ones there are more.
_LONG = 2**16
#: The least size of groups. Of groups half as large there would be as many comparisons, in twice as many stages.
_LEAST_GROUP = 4


@dataclass(frozen=True)
class _Order:
    """Which of two elements of a row comes first: by value, NaN as the largest, then by position."""

    dtype: str
    largest: bool

    def before(self, s: ScalarBuilder, a: Value, a_at: Value, b: Value, b_at: Value) -> Value:
        """Whether ``a`` at ``a_at`` comes before ``b`` at ``b_at``."""
        more, less = (a, b) if self.largest else (b, a)
        beyond, equal = more > less, a.eq(b)
        if is_float(self.dtype):
            beyond = beyond | (more.ne(more) & less.eq(less))
            equal = equal | (a.ne(a) & b.ne(b))
        return beyond | (equal & (a_at < b_at))


@dataclass(frozen=True)
class _Elements:
    """``count`` elements of each row, and where in the row each was (None: where it is)."""

    values: SSAValue
    positions: SSAValue | None
    count: Extent
    place: Callable[..., list[Any]]


@dataclass(frozen=True)
class _Groups:
    """``size`` elements a group: element j of group g is ``j * apart + g``; the last groups, from ``apart`` on, have
    the last such element alone, so that every element is in one group and none is out of range."""

    size: int
    apart: Extent
    count: Extent

    @staticmethod
    def of(extent: Extent, size: int) -> _Groups:
        apart = extent // size
        return _Groups(size, apart, extent - apart * (size - 1))

    def has(self, group: Value, j: Value) -> Value:
        return (group < self.apart) | j.eq(self.size - 1)


@rules(
    "X: _ ...",
    "K?: () | 1",
    attributes={"axis": axis_of("len(X)", default=-1), "K": at_least(0), "k": at_least(0), "largest": one_of(0, 1)},
    where=("k <= X[axis]",),
)
@operator("TopK")
@accuracy(EXACT)
def top_k(c: OpContext, x: Operand, k: Operand | None = None) -> Sequence[Operand]:
    """The ``k`` largest (or smallest) elements in order, and their positions; equal ones by position. NaN is the
    largest of all.

    A long row is cut into groups, level by level: the first ``k`` are in the ``k`` groups whose best come first.
    Few are left then, each of which counts those before it. All of it runs in parallel.
    """
    shape, dtype = c.shape(x), c.dtype(x)
    axis = c.axis(c.attribute("axis", -1), len(shape))
    count: Extent = (c.ints("k", k) or [0])[0]
    if isinstance(shape[axis], Size) and c.g.is_read(count):
        count = c.within("k", count, c.fewest(count), shape[axis])
    elif count > shape[axis]:
        raise ShapeError(f"{c.g.node}: TopK of {count} elements of an axis of {shape[axis]}")
    result = [count if a == axis else e for a, e in enumerate(shape)]
    ordered = _Order(dtype, bool(c.attribute("largest", 1)))

    def build(p: PrimBuilder) -> None:
        _Selection(p, ordered, shape, axis, count).build()

    return c.g.call("top_k", [c.value(x)], [(result, dtype), (result, "int64")], build)


def _group_sizes(extent: Extent, count: Extent) -> list[int]:
    """The size of groups level by level, none where few are left of ``extent`` or most are wanted.

    Of groups of f elements ``count * f`` are compared each with each, about as many as there are groups at best. Open
    extents get one level, as no proof holds that those of more are not negative, and are taken for their largest. An
    open count of no bound might be all: it gets none.
    """
    most = count if isinstance(count, int) else count.high
    if not most:
        return []
    sizes: list[int] = []
    left = _most(extent)
    while left > max(_FEW, 2 * _LEAST_GROUP * most):
        sizes.append(max(_LEAST_GROUP, isqrt(left) // most))
        apart = left // sizes[-1]
        left -= apart * (sizes[-1] - 1)
        if isinstance(extent, Size):
            break
    return sizes


def _most(extent: Extent) -> int:
    """The largest that ``extent`` may be, up to what groups are made for."""
    if isinstance(extent, int):
        return extent
    return _LONG if extent.high is None else min(extent.high, _LONG)


class _Selection:
    """Writes the stages: the first of groups level by level, then down again, from chosen groups to their elements."""

    def __init__(self, p: PrimBuilder, order: _Order, shape: Sequence[int], axis: int, count: Extent) -> None:
        self.p, self.order, self.count, self.extent = p, order, count, shape[axis]
        #: Of positions within a row.
        self.at = "int32" if likely(self.extent) < 2**31 else "int64"
        loops, self.loop = reduced_access(shape, [axis])
        self.rows = [shape[a] for a in loops[:-1]]

    def build(self) -> None:
        """All stages."""
        levels = [_Elements(self.p.inputs[0], None, self.extent, self._in_model)]
        groups: list[_Groups] = []
        for size in _group_sizes(self.extent, self.count):
            groups.append(_Groups.of(levels[-1].count, size))
            levels.append(self._best(levels[-1], groups[-1]))
        if not groups:
            self._result(levels[0], self._ranks(levels[0]))
            return
        top = levels.pop()
        chosen = self._chosen(top, self._ranks(top))
        while levels:
            level, group = levels.pop(), groups.pop()
            members, ids = self._members(level, group, chosen)
            ranks = self._ranks(members)
            if levels:
                chosen = self._chosen(members, ranks, ids)
            else:
                self._result(members, ranks)

    def _in_model(self, *d: Any) -> list[Any]:
        return [d[i] for i in self.loop]

    def _reads(self, e: _Elements, at: Callable[..., Any]) -> list[Access]:
        """Accesses of the values of ``e``, and of positions where it has them, at ``at(*dims)`` of each row."""
        n = len(self.rows)
        reads: list[Access] = [(e.values, lambda *d: e.place(*d[:n], at(*d)))]
        if e.positions is not None:
            reads.append((e.positions, lambda *d: [*d[:n], at(*d)]))
        return reads

    def _best(self, e: _Elements, groups: _Groups) -> _Elements:
        """The first of each group."""
        p, n = self.p, len(self.rows)
        shape = [*self.rows, groups.count]
        values, positions = p.temp(shape, self.order.dtype), p.temp(shape, self.at)

        def better(s: ScalarBuilder, value: Value, position: Value, v: Value, *own: Value) -> list[Value]:
            group, j = s.index(n), s.index(n + 1)
            at = own[0] if own else s.cast(j * groups.apart + group, self.at)
            first = (position < 0) | self.order.before(s, v, at, value, position)
            taken = groups.has(group, j) & first
            return [s.select(taken, v, value), s.select(taken, at, position)]

        p.generic(
            "p" * (n + 1) + "r",
            [*shape, groups.size],
            self._reads(e, lambda *d: d[n + 1] * extent_expr(groups.apart) + d[n]),
            [(b, lambda *d: d[: n + 1]) for b in (values, positions)],
            better,
            init=-1,
        )
        return _Elements(values, positions, groups.count, _as_they_are)

    def _members(self, level: _Elements, groups: _Groups, chosen: SSAValue) -> tuple[_Elements, SSAValue]:
        """The elements of the chosen groups, and which of ``level`` they are; at position -1 what is none."""
        p, n, size = self.p, len(self.rows), groups.size
        shape = [*self.rows, self.count * size]
        values = p.temp(shape, self.order.dtype)
        positions, ids = p.temp(shape, self.at), p.temp(shape, self.at)
        source = BodyBuffer(level.values, self.order.dtype)
        places = None if level.positions is None else BodyBuffer(level.positions, self.at)

        def member(s: ScalarBuilder, group: Value) -> list[Value]:
            at, j = [s.index(i) for i in range(n)], s.index(n + 1)
            number = s.cast(group, "int64") + s.cast(j, "int64") * s.const(groups.apart, "int64")
            which = as_index(s, number, level.count)  # states what proofs need: it is in range
            own = s.cast(which, self.at)
            place = own if places is None else places.load(s, [*at, which])
            inside = (group >= 0) & groups.has(s.cast(group, "index"), j)
            return [source.load(s, level.place(*at, which)), s.select(inside, place, -1), own]

        p.generic(
            "p" * (n + 2),
            [*self.rows, self.count, size],
            [(chosen, lambda *d: d[: n + 1])],
            [(b, lambda *d: [*d[:n], d[n] * size + d[n + 1]]) for b in (values, positions, ids)],
            member,
        )
        return _Elements(values, positions, self.count * size, _as_they_are), ids

    def _ranks(self, e: _Elements) -> SSAValue:
        """How many come before each."""
        p, n = self.p, len(self.rows)
        ranks = p.temp([*self.rows, e.count], self.at)

        def rank(s: ScalarBuilder, acc: Value, *read: Value) -> Value:
            if e.positions is None:
                v, other = read
                before = self.order.before(s, other, s.index(n + 1), v, s.index(n))
            else:
                v, at, other, other_at = read
                before = self.order.before(s, other, other_at, v, at) & (other_at >= 0)
            return acc + s.cast(before, self.at)

        reads = [*self._reads(e, lambda *d: d[n]), *self._reads(e, lambda *d: d[n + 1])]
        out: Access = (ranks, lambda *d: d[: n + 1])
        p.generic("p" * (n + 1) + "r", [*self.rows, e.count, e.count], reads, [out], rank, init=0)
        return ranks

    def _chosen(self, e: _Elements, ranks: SSAValue, ids: SSAValue | None = None) -> SSAValue:
        """Which of their level the first are; -1 past the last."""
        p, n = self.p, len(self.rows)
        chosen = p.temp([*self.rows, self.count], self.at)

        def pick(s: ScalarBuilder, found: Value, r: Value, at: Value, *own: Value) -> Value:
            which = own[0] if own else s.cast(s.index(n + 1), self.at)
            hit = r.eq(s.cast(s.index(n), self.at)) & (at >= 0)
            return s.select(hit, which, found)

        given = [b for b in (ranks, e.positions, ids) if b is not None]
        reads: list[Access] = [(b, lambda *d: [*d[:n], d[n + 1]]) for b in given]
        out: Access = (chosen, lambda *d: d[: n + 1])
        p.generic("p" * (n + 1) + "r", [*self.rows, self.count, e.count], reads, [out], pick, init=-1)
        return chosen

    def _result(self, e: _Elements, ranks: SSAValue) -> None:
        """Values and positions of the first, in order."""
        p, n = self.p, len(self.rows)

        def pick(s: ScalarBuilder, value: Value, position: Value, r: Value, v: Value, *own: Value) -> list[Value]:
            hit = r.eq(s.cast(s.index(n), self.at))
            if own:
                hit = hit & (own[0] >= 0)
            at = s.cast(own[0] if own else s.index(n + 1), "int64")
            return [s.select(hit, v, value), s.select(hit, at, position)]

        reads: list[Access] = [(ranks, lambda *d: [*d[:n], d[n + 1]]), *self._reads(e, lambda *d: d[n + 1])]
        outs: list[Access] = [(b, lambda *d: self._in_model(*d[: n + 1])) for b in p.outputs]
        p.generic("p" * (n + 1) + "r", [*self.rows, self.count, e.count], reads, outs, pick, init=0)


def _as_they_are(*d: Any) -> list[Any]:
    return list(d)
