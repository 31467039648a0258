"""Padded reads that depend on the row: the guards, and how many rows at either end have padded reads."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from landbridge.ir.prim_ops import ByteDotOp
from landbridge.passes.lower.access import ElementAccess, Guard
from landbridge.passes.lower.combiners import combiner, identity
from landbridge.passes.lower.nest import Nest, Stage, scalar_attr
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, at_least


@record(frozen=True)
class OpenEdges:
    """The number of first rows that read before their buffers, and the number of last rows that read beyond them."""

    first: int
    last: int


def row_guards(nest: Nest, m_dim: int | None, lane: int | None) -> list[tuple[Guard, int]]:
    """Returns the guards that depend on loop ``m_dim`` and on one reduction loop, each with that loop.

    Returns an empty list if a guard of a row has another form, or if padding may change the result of the reduction.
    """
    main = nest.reduction
    if m_dim is None or main is None or m_dim == lane or not skips_padding(main):
        return []
    tiled = {b.inner for b in nest.bounds}
    found = []
    for r in main.reads:
        for g in r.guards if isinstance(r, ElementAccess) else ():
            if g.index.coeff(m_dim):
                others = [d for d in g.index.coeffs if d != m_dim]
                if len(others) != 1 or g.index.rest or others[0] in tiled or not nest.dims[others[0]].reduction:
                    return []
                found.append((g, others[0]))
    return found


def open_edges(nest: Nest, guards: Sequence[tuple[Guard, int]], m_dim: int | None) -> OpenEdges | None:
    """Returns the edges of an open number of rows, from its ``row_guards``; None if there are none or they depend on
    the number.
    """
    if m_dim is None or not guards:
        return None
    first, last, extent = 0, 0, nest.dims[m_dim].extent
    for g, r in guards:
        c, iterations = g.index.coeff(m_dim), nest.dims[r].extent - 1
        if c <= 0 or isinstance(iterations, Size) or isinstance(g.index.const, Size):
            return None
        left = g.extent - c * extent
        if isinstance(left, Size):
            return None
        ends = sorted((0, g.index.coeff(r) * iterations))
        first = max(first, -((g.index.const + ends[0]) // c))
        last = max(last, -((left + c - 1 - g.index.const - ends[1]) // c))
    return OpenEdges(first, last)


def row_inside(guards: Sequence[tuple[Guard, int]], m_dim: int | None, row: Extent, d: int, i: int) -> bool:
    """Returns whether iteration ``i`` of reduction loop ``d`` reads no padding at ``row``, according to ``guards``.

    If the number of rows is open, ``row`` must be in the first or the last tile, and the tile must not contain padding
    of the other end.
    """

    def holds(g: Guard) -> bool:
        index = g.index.const + g.index.coeff(m_dim) * row + g.index.coeff(d) * i  # type: ignore[arg-type]
        return at_least(index, 0) is not False and at_least(g.extent - 1, index) is not False

    return all(r != d or holds(g) for g, r in guards)


def _widened(value: SSAValue) -> SSAValue:
    """Returns the operand if ``value`` is a conversion to a wider float, which is exact; else ``value`` itself."""
    return value.owner.operands[0] if isinstance(value.owner, arith.ExtFOp) else value


def skips_padding(stage: Stage) -> bool:
    """Returns whether leaving out padded iterations gives the same result as computing them.

    True for ``acc + x``, ``acc + x * w`` with padding 0, and for max and min padded with their identity.
    """
    combine = combiner(stage)
    padded = [r for r in stage.reads if isinstance(r, ElementAccess) and r.guards]
    if combine is None or not padded:
        return combine is not None
    accumulator = stage.body.args[len(stage.reads)]
    op = next(iter(accumulator.uses)).operation
    other = _widened(op.operands[1] if op.operands[0] is accumulator else op.operands[0])
    arguments = dict(zip(stage.body.args, stage.reads, strict=False))
    if other in arguments:
        factors = [other]
    elif combine in ("arith.addf", "arith.addi") and isinstance(other.owner, arith.MulfOp | arith.MuliOp | ByteDotOp):
        factors = [_widened(v) for v in other.owner.operands]
    else:
        return False
    if any(f not in arguments for f in factors):
        return False
    for r in padded:
        assert r.fill is not None
        if scalar_attr(r.fill) != scalar_attr(identity(combine, r.element)):
            return False
    return True
