"""Padded iterations at the two ends of a reduction loop, which only rows of the first and the last tile leave out.

The loop bounds depend on the tile's row, so that one piece of code serves all tiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from landbridge.passes.lower.access import Guard
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.cost import EDGES
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.row_edges import row_inside
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, expected_size


@record(frozen=True)
class IterationRows:
    """Iterations ``low`` to ``high`` of a loop, which only ``rows`` of a tile execute."""

    low: int
    high: int
    rows: frozenset[int]


@record(frozen=True)
class EdgeIterations:
    """The iterations of reduction loop ``dim`` that some rows of a tile leave out.

    ``first`` are those of the tile at row 0, at the start of the loop; ``last`` those of the tile at ``last_row``, at
    its end. Each row reads ``step`` iterations further on than the row before it. ``before`` and ``after``: how many
    iterations the first row of the first tile and the last row of the last one leave out, if the loop had as many. They
    exceed the iterations of the loop where padding is wider than its window.
    """

    dim: int
    first: tuple[IterationRows, ...]
    last: tuple[IterationRows, ...]
    step: int
    last_row: Extent
    before: int
    after: int


def edge_iterations(
    nest: Nest, sched: Schedule, guards: Sequence[tuple[Guard, int]], run: Run
) -> EdgeIterations | None:
    """Returns the iterations that rows of the first and last tile of ``run`` leave out, according to the
    ``row_guards``.

    Returns None if there are none, if the run has one tile only, or if one piece of code cannot serve all tiles.
    """
    m_dim = sched.m_dim
    if m_dim is None or len({d for _, d in guards}) != 1 or sched.horizontal:
        return None
    (g, d), *_ = guards
    m_extent, iterations, step = nest.dims[m_dim].extent, nest.dims[d].extent, g.index.coeff(m_dim)
    within = sched.inner[sched.inner.index(d) + 1 :]
    iterations_within = math.prod(expected_size(nest.dims[x].extent) for x in within)
    if isinstance(iterations, Size) or iterations_within < EDGES.iterations_within:
        return None
    unified = all((o.index.coeff(m_dim), o.index.coeff(d)) == (step, 1) for o, _ in guards)
    if not isinstance(step, int) or step < 1 or not unified or sched.iterations > 1:
        return None

    def taken(row: Extent | None) -> list[frozenset[int]]:
        """Returns, for each iteration, the rows that execute it in the tile that begins at ``row``; all rows if that is
        None.
        """
        if row is None:
            return [frozenset(range(run.tile))] * iterations
        return [
            frozenset(m for m in range(run.tile) if row_inside(guards, m_dim, row + m, d, i)) for i in range(iterations)
        ]

    def ends(first: Extent | None, last: Extent | None) -> EdgeIterations | None:
        """Returns the edge iterations if the first and the last tile begin at these rows; None for a tile elsewhere."""
        before = 0 if first is None else max(-o.index.const for o, _ in guards)
        after, last_row = 0, 0 if last is None else last
        for o, _ in guards if last is not None else ():
            beyond = o.index.const + (last_row + run.tile - 1) * step + iterations - o.extent
            if isinstance(beyond, Size):
                return None
            after = max(after, beyond)
        return _ends(d, step, run.tile, taken(first), taken(last), last_row, before, after)

    if any(isinstance(o.index.const, Size) for o, _ in guards):
        return None
    if isinstance(m_extent, Size):
        found = None if run.last is None else ends(0, run.last)
        # the second and the last but one tile may begin one row from the ends
        return found if found is not None and max(found.before, found.after) <= step else None
    if run.tile == m_extent:
        return None
    first, last = (
        (0 if run.start == 0 else None),
        (m_extent - run.tile if run.start + run.count * run.tile == m_extent else None),
    )
    found = ends(first, last)
    each = [taken(run.start + k * run.tile) for k in range(run.count)]
    return found if found is not None and _are_all(found, each, run.tile) else None


def edge_bounds(code: Code, edges: EdgeIterations, extent: int, row: Index) -> tuple[Index, Index]:
    """Returns the bounds of the iterations, out of ``extent``, that all rows of the tile at ``row`` execute; the first
    may exceed the second where there are none.

    Iterations below the first bound belong to ``edges.first``, those from the second bound on to ``edges.last``.
    """
    low: Index = 0
    high: Index = extent
    if edges.first:
        low = code.maximum(code.add(code.mul(row, -edges.step), edges.before), 0)
    if edges.last:
        left_out = code.add(code.mul(row, edges.step), edges.after - edges.step * edges.last_row)
        high = code.add(code.mul(code.maximum(left_out, 0), -1), extent)
    return low, high


def _ends(
    d: int,
    step: int,
    m_size: int,
    low: Sequence[frozenset[int]],
    high: Sequence[frozenset[int]],
    last_row: Extent,
    before: int,
    after: int,
) -> EdgeIterations | None:
    """Returns the edge iterations of loop ``d``, given the rows that execute each iteration in the first and in the
    last tile.

    Returns None if every row executes all iterations, or if iterations in the middle of the loop are left out.
    """
    iterations, every = len(low), frozenset(range(m_size))
    begin = next((i for i, taken in enumerate(low) if taken == every), iterations)
    end = next((i for i in reversed(range(iterations)) if high[i] == every), -1) + 1
    if begin > end or any(taken != every for taken in (*low[begin:], *high[:end])) or (begin, end) == (0, iterations):
        return None
    first, last = tuple(_runs(low, 0, begin)), tuple(_runs(high, end, iterations))
    return EdgeIterations(d, first, last, step, last_row, before, after)


def _are_all(edges: EdgeIterations, tiles: Sequence[Sequence[frozenset[int]]], m_size: int) -> bool:
    """Returns whether ``edges`` describe ``tiles`` exactly: for each tile, the rows that execute each iteration."""
    for k, taken in enumerate(tiles):
        left = [frozenset(range(m_size))] * len(taken)
        for parts, here in ((edges.first, k == 0), (edges.last, k == len(tiles) - 1)):
            for part in parts if here else ():
                for i in range(part.low, part.high):
                    left[i] &= part.rows
        if list(taken) != left:
            return False
    return True


def _runs(rows: Sequence[frozenset[int]], low: int, high: int) -> Iterator[IterationRows]:
    """Yields iterations ``low`` to ``high``, grouped into ranges that the same rows execute; ``rows`` gives them by
    iteration.
    """
    for taken, iterations in groupby(range(low, high), key=lambda i: rows[i]):
        each = list(iterations)
        yield IterationRows(each[0], each[-1] + 1, taken)
