"""RotaryEmbedding: pairs of elements of each head, rotated by an angle that grows with the position in the sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from landbridge.ir.prim_builder import Access, PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.size_exprs import extent_expr
from landbridge.ir.types import shape_of
from landbridge.operators import kernel
from landbridge.ops.accuracy import accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.legal import at_least, one_of
from landbridge.ops.rules import Index, rules
from landbridge.ops.slicing import index_within
from landbridge.sizes.size import Extent

_POSITION = Index("[0 for e in many(P)]", "[e - 1 for e in many(P)]")


@rules(
    "X: B H S D | B S E",
    "cos_cache: P half | B S half",
    "sin_cache: P half | B S half",
    "position_ids?: B S",
    attributes={
        "interleaved": one_of(0, 1),
        "num_heads": at_least(0, default=0),
        "rotary_embedding_dim": at_least(0, default=0),
    },
    where=(
        "len(cos_cache) == len(sin_cache)",
        "len(X) == 4 or (num_heads > 0 and E % num_heads == 0)",
        "rotary_embedding_dim == 0 or 2 * half == rotary_embedding_dim",
        "rotary_embedding_dim > 0 or 2 * half == D",
        "rotary_embedding_dim > 0 or 2 * half * num_heads == E",
        "2 * half <= D",
        "2 * half <= E // num_heads",
    ),
    indices={"position_ids": _POSITION},
)
@kernel("", "RotaryEmbedding", since=23)
@accuracy(ulp=2, sums=True)
def rotary_embedding(
    c: OpContext, x: Operand, cosines: Operand, sines: Operand, positions: Operand | None = None
) -> Operand:
    """Computes ``x`` [B, H, S, D] or [B, S, H * D] with its pairs rotated; elements after the rotated ones stay as they
    are.

    ``cosines`` and ``sines`` have a row for each position, [P, half], which ``positions`` [B, S] names, or one for each
    step, [B, S, half].
    """
    shape = c.shape(x)
    if len(shape) == 4:
        batch, heads, steps, size = shape
        axes, sizes = (0, 2), (batch, heads, steps)
    else:
        (batch, steps, width), heads = shape, c.attribute("num_heads", 0)
        size = width // heads
        axes, sizes = (0, 1), (batch, steps, heads)
    if (positions is None) != (c.rank(cosines) == 3):
        how = "left out" if positions is None else "given"
        raise c.unsupported(f"position_ids are {how} where cos_cache has {c.rank(cosines)} axes")
    whole = not c.attribute("rotary_embedding_dim", 0)
    interleaved = bool(c.attribute("interleaved", 0))

    def build(p: PrimBuilder) -> None:
        _write_stages(p, axes, positions is not None, interleaved, whole)

    operands = [c.value(v) for v in (c.reshape(x, (*sizes, size)), cosines, sines, positions) if v is not None]
    key = (axes, positions is not None, interleaved, whole)
    created = c.g.call("rotary_embedding", operands, [((*sizes, size), c.dtype(x))], build, key)[0]
    return c.reshape(created, shape)


def _write_stages(p: PrimBuilder, axes: tuple[int, int], by_position: bool, interleaved: bool, whole: bool) -> None:
    """Writes the first and the second elements of all pairs, then those that are not rotated, unless ``whole`` heads
    are.
    """
    x, cosines, sines = p.inputs[:3]
    (target,), loops = p.outputs, shape_of(x.type)[:3]
    size, half = shape_of(x.type)[3], shape_of(cosines.type)[-1]
    stride = 2 if interleaved else 1
    begins = (0, 1) if interleaved else (0, half)
    pairs: list[Access] = [(x, lambda *d, b=begin: (*d[:3], d[3] * stride + extent_expr(b))) for begin in begins]
    tables = [BodyBuffer(b, p.dtype(b)) for b in (cosines, sines)]
    angles: list[Access]
    if by_position:
        angles = [(p.inputs[3], lambda *d: [d[a] for a in axes])]
    else:
        angles = [(b, lambda *d: [*(d[a] for a in axes), d[3]]) for b in (cosines, sines)]

    def rotated(second: bool) -> Any:
        def body(s: ScalarBuilder, a: Value, b: Value, *of_step: Value) -> Value:
            angle = _angle(s, tables, shape_of(cosines.type)[0], of_step) if by_position else of_step
            first, other, cosine, sine = (s.cast(v, accumulator(v.dtype)) for v in (a, b, *angle))
            return s.cast(other * cosine + first * sine if second else first * cosine - other * sine, a.dtype)

        return body

    for number, begin in enumerate(begins):
        written: list[Access] = [(target, lambda *d, b=begin: (*d[:3], d[3] * stride + extent_expr(b)))]
        p.generic("pppp", [*loops, half], [*pairs, *angles], written, rotated(bool(number)))
    if not whole and size != 2 * half:
        rest: list[Access] = [(b, lambda *d: (*d[:3], d[3] + extent_expr(2 * half))) for b in (x, target)]
        p.generic("pppp", [*loops, size - 2 * half], rest[:1], rest[1:], lambda s, v: v)


def _angle(s: ScalarBuilder, tables: Sequence[BodyBuffer], count: Extent, of_step: Sequence[Value]) -> list[Value]:
    """Returns cosine and sine of the pair of loop 3 at the position of a step; tables have ``count`` rows."""
    (position,) = of_step
    row = index_within(s, position, count)
    return [table.load(s, [row, s.index(3)]) for table in tables]
