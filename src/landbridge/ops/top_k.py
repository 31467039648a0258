"""TopK: the first elements of sorted rows, found among the best of groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import isqrt
from typing import Any

from xdsl.ir import SSAValue

from landbridge.errors import ShapeError
from landbridge.ir.prim_builder import Access, PrimBuilder
from landbridge.ir.scalar_dtypes import bits_of, is_float
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.size_exprs import extent_expr
from landbridge.ir.types import element_count, shape_of
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.legal import at_least, axis_of, one_of
from landbridge.ops.reduce import position_dtype, reduced_access
from landbridge.ops.rules import rules
from landbridge.ops.slicing import index_within
from landbridge.ops.sort_network import Sorting, sorted_rows
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, largest

#: Rows of at most this many elements are sorted by comparing all pairs; groups would cost more than they save.
_FEW = 128
#: The longest open extent that group sizes are chosen for; longer ones have more groups.
_LONG = 2**16
#: The smallest groups of an open extent. Groups of half the size would need as many comparisons in twice as many
#: stages.
_LEAST_GROUP = 4
#: The group sizes to choose from.
_SIZES = (3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 128, 256)
#: The cost of a level in addition to its comparisons: its kernels and their code.
_LEVEL = 4096
#: At most this many elements of an axis that is not the last one are kept in registers, while the axis is read once.
_RETAINED = 8
_VECTOR = 16


@record(frozen=True)
class _Order:
    """Which elements of ``dtype`` come first: by value, NaN as the largest, then by position. ``at`` is the dtype of
    positions."""

    dtype: str
    largest: bool
    at: str

    @property
    def key_dtype(self) -> str:
        """Returns the dtype of integer keys that are less for elements that come before others, and equal for equal
        ones.
        """
        return "int64" if bits_of(self.dtype) == 64 or self.dtype == "uint32" else "int32"

    def key(self, s: ScalarBuilder, v: Value) -> Value:
        """Returns the key of an element."""
        dtype = self.key_dtype
        if is_float(self.dtype):
            v = s.cast(v, "float64" if dtype == "int64" else "float32")
            bits, lowest = s.bits(v), -(1 << bits_of(dtype) - 1)
            # Below zero more bits are less; both zeros are one number, and NaN is above infinity.
            number = s.select(bits < 0, s.const(lowest, dtype) - bits, bits)
            number = s.select(v.ne(v), s.const(-lowest - 1, dtype), number)
        elif self.dtype == "uint64":
            number = s.cast(v ^ s.const(1 << 63, "uint64"), dtype)
        else:
            number = s.cast(v, dtype)
        return number ^ -1 if self.largest else number

    def before(self, s: ScalarBuilder, a: Value, a_at: Value, b: Value, b_at: Value) -> Value:
        """Returns whether the element of key ``a`` at ``a_at`` comes before that of ``b`` at ``b_at``."""
        return (a < b) | (a.eq(b) & (a_at < b_at))


@record(frozen=True)
class _Elements:
    """``count`` elements of each row: ``read`` contains their keys, or the elements themselves if these are all of a
    row.

    ``positions`` are their indices in the row (None: element i is at i), negative for padding.
    """

    read: SSAValue
    positions: SSAValue | None
    count: Extent

    @property
    def operands(self) -> list[SSAValue]:
        return [self.read] if self.positions is None else [self.read, self.positions]


@record(frozen=True)
class _Groups:
    """Groups of ``size`` elements: element j of group g is ``j * stride + g``.

    The last groups, from ``stride`` on, consist of one element each, so that every element is in one group and none is
    out of range.
    """

    size: int
    stride: Extent
    count: Extent

    @staticmethod
    def of(extent: Extent, size: int) -> _Groups:
        stride = extent // size
        return _Groups(size, stride, extent - stride * (size - 1))

    def has(self, group: Value, j: Value) -> Value:
        return (group < self.stride) | j.eq(self.size - 1)

    def of_element(self, s: ScalarBuilder, element: Value) -> Value:
        """Returns the number of the group of an element."""
        before = s.minimum(s.binary("div", element, largest(self.stride, 1)), self.size - 1)
        # if there are few elements, the stride is 0: each is a group
        return element - before * s.const(self.stride, element.dtype)


@rules(
    "X: _ ...",
    "K?: () | 1",
    attributes={"axis": axis_of("len(X)", default=-1), "K": at_least(0), "k": at_least(0), "largest": one_of(0, 1)},
    where=("k <= X[axis]",),
)
@kernel("", "TopK")
@accuracy(EXACT)
def top_k(c: OpContext, x: Operand, k: Operand | None = None) -> Sequence[Operand]:
    """Computes the ``k`` largest (or smallest) elements in order, and their positions; equal ones are ordered by
    position. NaN is the largest of all.

    A long row is divided into groups, level by level: the first ``k`` elements are in the ``k`` groups with the best
    first elements. The few elements left are ranked by counting those before each. Everything runs in parallel.
    """
    shape, dtype = c.shape(x), c.dtype(x)
    axis = c.axis(c.attribute("axis", -1), len(shape))
    count: Extent = (c.ints("k", k) or [0])[0]
    if isinstance(shape[axis], Size) and c.g.is_read(count):
        count = c.within("k", count, c.fewest(count), shape[axis])
    elif count > shape[axis]:
        raise ShapeError(f"{c.g.node}: TopK of {count} elements of an axis of {shape[axis]}")
    axes, loop = reduced_access(shape, [axis])
    order = _Order(dtype, bool(c.attribute("largest", 1)), position_dtype(shape[axis]))
    inner = element_count(shape[axis + 1 :])
    if isinstance(count, int) and 0 < count <= _RETAINED and c.g.expected(inner) >= _VECTOR:
        return _retained(c, x, axis, count, order)
    row_major = c.value(c.transpose(x, axes))
    positions = _Selection(c, order, shape_of(row_major.type), count).positions(row_major)
    values, places = _result(c, row_major, positions)
    return c.transpose(values, loop), c.transpose(places, loop)


def _retained(c: OpContext, x: Operand, axis: int, count: int, order: _Order) -> Sequence[Operand]:
    """Returns the first few elements along an axis by insertion: each element moves those that come after it by one
    position.
    """
    shape, dtype = c.shape(x), order.dtype
    axes, loop = reduced_access(shape, [axis])
    others, n, at = [shape[a] for a in axes[:-1]], len(shape) - 1, order.at

    def build(p: PrimBuilder) -> None:
        keys, places = p.temp([count, *others], order.key_dtype), p.temp([count, *others], at)

        def keep(s: ScalarBuilder, *read: Value) -> list[Value]:
            held, places = read[:count], read[count:-1]
            key, here = order.key(s, read[-1]), s.cast(s.index(n), at)
            first = [
                (location < 0) | (key < v) for v, location in zip(held, places, strict=True)
            ]  # equal ones came before
            retained = []
            for old, new in ((held, key), (places, here)):
                # If an element comes before one, it also comes before all that follow, which move by one position.
                moved = [new, *(s.select(f, v, new) for f, v in zip(first, old[:-1], strict=False))]
                retained += [s.select(f, m, v) for f, m, v in zip(first, moved, old, strict=True)]
            return retained

        outs: list[Access] = [(b, lambda *d, i=i: [i, *d[:n]]) for b in (keys, places) for i in range(count)]
        loops = [*others, shape[axis]]
        p.generic("p" * n + "r", loops, [(p.inputs[0], lambda *d: [d[i] for i in loop])], outs, keep, init=-1)
        source = BodyBuffer(p.inputs[0], dtype)

        def at_location(s: ScalarBuilder, position: Value) -> list[Value]:
            where = [s.index(1 + loop[a]) if a != axis else index_within(s, position, e) for a, e in enumerate(shape)]
            return [source.load(s, where), s.cast(position, "int64")]

        def in_model(i: Any, *d: Any) -> list[Any]:
            return [i if a == axis else d[loop[a]] for a in range(len(shape))]

        p.generic(
            "p" * (n + 1), [count, *others], [(places, lambda *d: d)], [(b, in_model) for b in p.outputs], at_location
        )

    result = [count if a == axis else e for a, e in enumerate(shape)]
    return c.g.call("top_k", [c.value(x)], [(result, dtype), (result, "int64")], build)


def _result(c: OpContext, x: SSAValue, positions: SSAValue) -> Sequence[SSAValue]:
    """Returns the elements of rows at ``positions``, and the positions, in the shape and dtypes of the model."""
    (*rows, extent), shape, dtype = c.shape(x), c.shape(positions), c.dtype(x)

    def build(p: PrimBuilder) -> None:
        source = BodyBuffer(p.inputs[0], dtype)

        def at_location(s: ScalarBuilder, position: Value) -> list[Value]:
            where = [*(s.index(i) for i in range(len(rows))), index_within(s, position, extent)]
            return [source.load(s, where), s.cast(position, "int64")]

        outs: list[Access] = [(b, lambda *d: d) for b in p.outputs]
        p.generic("p" * len(shape), shape, [(p.inputs[1], lambda *d: d)], outs, at_location)

    return c.g.call("top_k", [x, positions], [(shape, dtype), (shape, "int64")], build)


def _group_sizes(extent: Extent, count: Extent) -> tuple[int, ...]:
    """Returns the group sizes level by level; none if few elements are left of ``extent``, or if most of them are
    wanted.

    Open extents get one level, because the extents of more levels cannot be proved positive; they are estimated at
    their largest size. An open count without a bound might be all elements, so it gets none.
    """
    most = count if isinstance(count, int) else count.high
    if not most:
        return ()
    if isinstance(extent, int):
        return _sizes_for(extent, most)[1]
    left = _most(extent)
    grouped = left > max(_FEW, 2 * _LEAST_GROUP * most)
    return (max(_LEAST_GROUP, isqrt(left) // most),) if grouped else ()


@cache
def _sizes_for(extent: int, count: int) -> tuple[int, tuple[int, ...]]:
    """Returns the approximate number of comparisons to find the first ``count`` of ``extent``, and the group sizes
    level by level.
    """
    best: tuple[int, tuple[int, ...]] = _comparisons(extent), ()
    for size in _SIZES:
        top = extent - extent // size * (size - 1)
        if extent > _FEW and count * size < extent and count <= top:
            above, sizes = _sizes_for(top, count)
            best = min(best, (_LEVEL + extent + above + _comparisons(count * size), (size, *sizes)))
    return best


def _comparisons(extent: int) -> int:
    """Returns the number of comparisons that sort ``extent`` elements: all pairs, or a network."""
    if extent <= _FEW:
        return extent * extent
    bits = (extent - 1).bit_length()
    return (bits * (bits + 1) // 2) << bits


def _most(extent: Extent) -> int:
    """Returns the largest size of ``extent``, limited to the longest one that group sizes are chosen for."""
    if isinstance(extent, int):
        return extent
    return _LONG if extent.high is None else min(extent.high, _LONG)


class _Selection:
    """Finds the best elements of groups level by level, then goes back from the chosen groups to their elements."""

    def __init__(self, c: OpContext, order: _Order, shape: Sequence[Extent], count: Extent) -> None:
        self.c, self.order, self.count, self.extent = c, order, count, shape[-1]
        self.rows = list(shape[:-1])

    def positions(self, x: SSAValue) -> SSAValue:
        """Returns the positions of the first elements in each row of ``x``, in order."""
        levels = [_Elements(x, None, self.extent)]
        groups: list[_Groups] = []
        for size in _group_sizes(self.extent, self.count):
            groups.append(_Groups.of(levels[-1].count, size))
            levels.append(self._best(levels[-1], groups[-1]))
        found = self._first(levels.pop())
        while levels:
            found = self._first(self._members(levels.pop(), groups, found))
            groups.pop()
        return found

    def _first(self, e: _Elements) -> SSAValue:
        """Returns the positions of the first of ``e``, in order; negative after the last."""
        if isinstance(e.count, int) and e.count > _FEW:
            order = self.order
            sorting = Sorting(self.rows, e.count, self.count, order.key_dtype, order.at, order.before)
            return sorted_rows(self.c, e.operands, sorting, lambda s, v: self._key(s, e, v))
        return self._ranked(e)

    def _key(self, s: ScalarBuilder, e: _Elements, v: Value) -> Value:
        """Returns the key of a value that was read from ``e``."""
        return self.order.key(s, v) if e.positions is None else v

    def _reads(self, e: _Elements, buffers: Sequence[SSAValue], at: Callable[..., Any]) -> list[Access]:
        """Returns accesses of the buffers of ``e``, at ``at(*dims)`` of each row."""
        n = len(self.rows)
        return [(b, lambda *d: [*d[:n], at(*d)]) for b in buffers]

    def _best(self, e: _Elements, groups: _Groups) -> _Elements:
        """Returns the first element of each group."""
        n, shape, at = len(self.rows), [*self.rows, groups.count], self.order.at

        def better(s: ScalarBuilder, key: Value, position: Value, v: Value, *owned: Value) -> list[Value]:
            group, j = s.cast(s.index(n), at), s.cast(s.index(n + 1), at)
            here, new = owned[0] if owned else j * s.const(groups.stride, at) + group, self._key(s, e, v)
            first = (position < 0) | self.order.before(s, new, here, key, position)
            taken = groups.has(group, j) & first
            return [s.select(taken, new, key), s.select(taken, here, position)]

        def build(p: PrimBuilder) -> None:
            p.generic(
                "p" * (n + 1) + "r",
                [*shape, groups.size],
                self._reads(e, p.inputs, lambda *d: d[n + 1] * extent_expr(groups.stride) + d[n]),
                [(b, lambda *d: d[: n + 1]) for b in p.outputs],
                better,
                init=-1,
            )

        keys, positions = self.c.g.call("top_k_groups", e.operands, [(shape, self.order.key_dtype), (shape, at)], build)
        return _Elements(keys, positions, groups.count)

    def _members(self, level: _Elements, groups: Sequence[_Groups], chosen: SSAValue) -> _Elements:
        """Returns the elements of those groups, on the last level of ``groups``, that have the ``chosen`` positions."""
        n, group, at = len(self.rows), groups[-1], self.order.at
        shape = [*self.rows, self.count, group.size]

        def build(p: PrimBuilder) -> None:
            source = BodyBuffer(p.inputs[0], p.dtype(p.inputs[0]))
            places = None if level.positions is None else BodyBuffer(p.inputs[1], at)

            def member(s: ScalarBuilder, position: Value) -> list[Value]:
                row, j = [s.index(i) for i in range(n)], s.cast(s.index(n + 1), at)
                number = s.maximum(position, 0)
                for each in groups:
                    number = each.of_element(s, number)
                number, inside = number + j * s.const(group.stride, at), group.has(number, j) & (position >= 0)
                which = index_within(s, number, level.count)
                location = number if places is None else places.load(s, [*row, which])
                return [self._key(s, level, source.load(s, [*row, which])), s.select(inside, location, -1)]

            p.generic(
                "p" * (n + 2),
                shape,
                [(p.inputs[-1], lambda *d: d[: n + 1])],
                [(b, lambda *d: d) for b in p.outputs],
                member,
            )

        outputs = [(shape, self.order.key_dtype), (shape, at)]
        created = self.c.g.call("top_k_members", [*level.operands, chosen], outputs, build)
        flat = [*self.rows, self.count * group.size]
        keys, positions = (self.c.g.reshape(v, flat) for v in created)
        return _Elements(keys, positions, self.count * group.size)

    def _ranked(self, e: _Elements) -> SSAValue:
        """Ranks few elements by counting how many come before each; returns the positions of the first ranks."""
        n, at = len(self.rows), self.order.at

        def rank(s: ScalarBuilder, acc: Value, *read: Value) -> Value:
            if e.positions is None:
                (v, other), here, there = read, s.cast(s.index(n), at), s.cast(s.index(n + 1), at)
                before = self.order.before(s, self._key(s, e, other), there, self._key(s, e, v), here)
            else:
                v, here, other, there = read
                before = self.order.before(s, other, there, v, here) & (there >= 0)
            return acc + s.cast(before, at)

        def pick(s: ScalarBuilder, found: Value, r: Value, *owned: Value) -> Value:
            hit = r.eq(s.cast(s.index(n), at))
            if owned:
                hit = hit & (owned[0] >= 0)
            return s.select(hit, owned[0] if owned else s.cast(s.index(n + 1), at), found)

        def build(p: PrimBuilder) -> None:
            ranks = p.temp([*self.rows, e.count], at)
            reads = [*self._reads(e, p.inputs, lambda *d: d[n]), *self._reads(e, p.inputs, lambda *d: d[n + 1])]
            out: Access = (ranks, lambda *d: d[: n + 1])
            p.generic("p" * (n + 1) + "r", [*self.rows, e.count, e.count], reads, [out], rank, init=0)
            given = [ranks, *p.inputs[1:]]
            out = (p.outputs[0], lambda *d: d[: n + 1])
            loops = [*self.rows, self.count, e.count]
            p.generic("p" * (n + 1) + "r", loops, self._reads(e, given, lambda *d: d[n + 1]), [out], pick, init=-1)

        return self.c.g.call("top_k_ranks", e.operands, [([*self.rows, self.count], at)], build)[0]
