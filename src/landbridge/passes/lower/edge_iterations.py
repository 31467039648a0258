"""Iterations that rows of the first and of the last tile leave out as they would read padding: those at the ends of a
loop, so that the code of one tile does all tiles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from landbridge.passes.lower.access import Guard
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.row_edges import row_inside
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, expected_size

#: Iterations of the loops within one that edge tiles leave iterations out of, below which asking for the tile's place
#: costs more than it saves in code.
_FEWEST_WITHIN = 8


@record(frozen=True)
class IterationRows:
    """Iterations ``low`` to ``high`` of a loop, which ``rows`` of a tile take."""

    low: int
    high: int
    rows: frozenset[int]


@record(frozen=True)
class EdgeIterations:
    """The iterations of reduction loop ``dim`` that not all rows take: those in the first tile of a run, which begins
    at row 0 and begin the loop, and those in its last tile, which begins at ``last_row`` and end it. A row is ``step``
    iterations further than the one before."""

    dim: int
    first: tuple[IterationRows, ...]
    last: tuple[IterationRows, ...]
    step: int
    last_row: Extent


def edge_iterations(
    nest: Nest, sched: Schedule, guards: Sequence[tuple[Guard, int]], run: Run
) -> EdgeIterations | None:
    """The iterations that rows of the first and the last tile of ``run`` leave out, by the ``row_guards``, where the
    code of one tile may do all of it. None where no row does, where one tile is all, or where it is not as simple."""
    along = sched.rows
    if along is None or len({d for _, d in guards}) != 1 or sched.horizontal:
        return None
    (g, d), *_ = guards
    rows, iterations, step = nest.dims[along].extent, nest.dims[d].extent, g.index.coeff(along)
    within = sched.inner[sched.inner.index(d) + 1 :]
    if isinstance(iterations, Size) or math.prod(expected_size(nest.dims[x].extent) for x in within) < _FEWEST_WITHIN:
        return None
    unified = all((o.index.coeff(along), o.index.coeff(d)) == (step, 1) for o, _ in guards)
    if not isinstance(step, int) or step < 1 or not unified or sched.iterations > 1:
        return None

    def taken(row: Extent | None) -> list[frozenset[int]]:
        """The rows of the tile that begins at ``row`` that take each iteration; all where it is at no edge."""
        if row is None:
            return [frozenset(range(run.tile))] * iterations
        return [
            frozenset(m for m in range(run.tile) if row_inside(guards, along, row + m, d, i)) for i in range(iterations)
        ]

    if isinstance(rows, Size):
        found = None if run.last is None else _ends(d, step, run.tile, taken(0), taken(run.last), run.last)
        if found is None:
            return None
        # the tiles next to both ends may begin one row from them
        left_out = (
            max((p.high for p in found.first), default=0),
            max((iterations - p.low for p in found.last), default=0),
        )
        return found if max(left_out) <= step else None
    if run.tile == rows:
        return None
    first, last = (
        (0 if run.start == 0 else None),
        (rows - run.tile if run.start + run.count * run.tile == rows else None),
    )
    found = _ends(d, step, run.tile, taken(first), taken(last), 0 if last is None else last)
    each = [taken(run.start + k * run.tile) for k in range(run.count)]
    return found if found is not None and _are_all(found, each, run.tile) else None


def edge_bounds(code: Code, edges: EdgeIterations, extent: int, row: Index) -> tuple[Index, Index]:
    """The iterations, of ``extent``, that all rows take of the tile that begins at ``row``: those before the first are
    of ``edges.first``, those from the second on of ``edges.last``."""
    low: Index = 0
    high: Index = extent
    if edges.first:
        low = code.maximum(code.add(code.mul(row, -edges.step), edges.first[-1].high), 0)
    if edges.last:
        left_out = code.add(code.mul(row, edges.step), extent - edges.last[0].low - edges.step * edges.last_row)
        high = code.add(code.mul(code.maximum(left_out, 0), -1), extent)
    return low, high


def _ends(
    d: int, step: int, rows: int, low: Sequence[frozenset[int]], high: Sequence[frozenset[int]], last_row: Extent
) -> EdgeIterations | None:
    """The iterations of loop ``d`` that some of ``rows`` leave out, by those that take each in the first tile and in
    the last; None where none does, or they are not at either end of the loop."""
    iterations, every = len(low), frozenset(range(rows))
    begin = next((i for i, taken in enumerate(low) if taken == every), iterations)
    end = next((i for i in reversed(range(iterations)) if high[i] == every), -1) + 1
    if begin > end or any(taken != every for taken in (*low[begin:], *high[:end])) or (begin, end) == (0, iterations):
        return None
    return EdgeIterations(d, tuple(_runs(low, 0, begin)), tuple(_runs(high, end, iterations)), step, last_row)


def _are_all(edges: EdgeIterations, tiles: Sequence[Sequence[frozenset[int]]], rows: int) -> bool:
    """Whether no tile leaves out another iteration than ``edges`` say; of each the rows that take each iteration are
    given."""
    for k, taken in enumerate(tiles):
        left = [frozenset(range(rows))] * len(taken)
        for parts, here in ((edges.first, k == 0), (edges.last, k == len(tiles) - 1)):
            for part in parts if here else ():
                for i in range(part.low, part.high):
                    left[i] &= part.rows
        if list(taken) != left:
            return False
    return True


def _runs(rows: Sequence[frozenset[int]], low: int, high: int) -> Iterator[IterationRows]:
    """Iterations ``low`` to ``high``, those that the same rows take together; ``rows`` take each."""
    for taken, iterations in groupby(range(low, high), key=lambda i: rows[i]):
        each = list(iterations)
        yield IterationRows(each[0], each[-1] + 1, taken)
