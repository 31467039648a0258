"""Unique: distinct values, in the order of their first occurrence.

A hash table finds what an element equals. How many there are only the run knows: a kernel writes where all have room,
then the program is cut, and what comes after has them as a dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import SSAValue

from landbridge.ir.loop_builder import LoopBuilder
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalar_dtypes import bits_of, is_float
from landbridge.ir.scalars import Value
from landbridge.ir.types import element_count
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.legal import one_of
from landbridge.ops.rules import rules
from landbridge.ops.slicing import part
from landbridge.sizes.size import Extent

#: Its products spread numbers over the high bits; odd.
_SPREADING = 0x9E3779B97F4A7C15
#: Elements that a hash table has room for.
_MOST_ELEMENTS = 1 << 30


@rules("X: ...", attributes={"sorted": one_of(0, 1, default=1)})
@kernel("", "Unique")
@accuracy(EXACT)
def unique(c: OpContext, x: Operand) -> Sequence[Operand]:
    """Returns distinct values, the first index of each, the index of the value of each element, and the counts.

    Raises UnsupportedOperatorError for parts along an axis, and for what is wanted in order.
    """
    count = element_count(c.shape(x))
    if c.attribute("axis") is not None or c.attribute("sorted", 1):
        raise c.unsupported("it is asked for parts along an axis, or in order")
    if not isinstance(count, int) or not 0 < count <= _MOST_ELEMENTS:
        raise c.unsupported("how many elements there are is open, or too many for a table")
    values, first, which, times, total = _found(c, c.value(c.reshape(x, (count,))), count)
    once = c.extent_read_from(total, count)
    retained = [part(c, each, [0], [1], cast(list[int], [once])) for each in (values, first, times)]
    return retained[0], retained[1], which, retained[2]


def _found(c: OpContext, x: SSAValue, count: int) -> Sequence[SSAValue]:
    """Returns the distinct values, the first index of each, the value of each of ``x``, and the counts; and their
    number, int64 (1), after which elements are undefined.
    """
    dtype = c.dtype(x)
    rows = 2 * count + 1

    def build(p: PrimBuilder) -> None:
        table = p.temp([rows], "int32")

        def find(s: LoopBuilder, _: Value, *memrefs: SSAValue) -> None:
            x, values, first, which, times, total, table = (BodyBuffer(each, p.dtype(each)) for each in memrefs)
            table.fill(s, -1)

            def element(at: Value, once: Value) -> Sequence[Value]:
                value = x.load(s, [at])

                def is_another(row: Value) -> tuple[Value, Sequence[Value]]:
                    number = table.load(s, [s.inside(row, rows)])
                    held = values.load(s, [s.inside(number, count)])
                    return (number >= 0) & s.logical_not(_are_same(s, held, value)), [row, number]

                def following(row: Value, _: Value) -> Sequence[Value]:
                    return [s.select((row + 1).eq(rows), s.const(0, "index"), row + 1)]

                row, number = s.repeat([_hash(s, value, rows)], is_another, following)

                def enter() -> Sequence[Value]:
                    location = [s.inside(once, count)]
                    table.store(s, [s.inside(row, rows)], s.cast(once, "int32"))
                    values.store(s, location, value)
                    first.store(s, location, s.cast(at, "int64"))
                    times.store(s, location, s.const(1, "int64"))
                    return [once, once + 1]

                def again() -> Sequence[Value]:
                    location = s.inside(number, count)
                    times.store(s, [location], times.load(s, [location]) + 1)
                    return [location, once]

                location, after = s.branch(number < 0, enter, again)
                which.store(s, [at], s.cast(location, "int64"))
                return [after]

            (once,) = s.loop(0, count, [s.const(0, "index")], element)
            total.store(s, [0], s.cast(once, "int64"))

        p.forall(1, [*p.inputs, *p.outputs, table], find)

    shape: Sequence[Extent] = (count,)
    outputs: list[tuple[Sequence[Extent], str]] = [(shape, dtype), *[(shape, "int64")] * 3, ((1,), "int64")]
    return c.g.call("unique", [x], outputs, build)


def _are_same(s: LoopBuilder, a: Value, b: Value) -> Value:
    """Returns whether both are equal, or both NaN."""
    same = a.eq(b)
    return same | (a.ne(a) & b.ne(b)) if is_float(a.dtype) else same


def _hash(s: LoopBuilder, value: Value, rows: int) -> Value:
    """Returns an index below ``rows``, which is the same for equal values."""
    if is_float(value.dtype):
        wide = value if bits_of(value.dtype) > 16 else s.cast(value, "float32")
        bits = s.cast(s.bits(wide), "int64")
        bits = s.select(wide.eq(0.0), s.const(0, "int64"), s.select(wide.ne(wide), s.const(-1, "int64"), bits))
    else:
        bits = s.cast(value, "int64")
    spread = s.binary("shr", s.cast(bits, "uint64") * _SPREADING, 32)
    return s.cast(s.binary("shr", spread * rows, 32), "index")
