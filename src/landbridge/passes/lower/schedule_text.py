"""Describes schedules in reports: what was chosen for each nest of a kernel, and the alternatives."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.register_block import TileSpace, weighed_blocks
from landbridge.passes.lower.row_cut import row_cut
from landbridge.passes.lower.rows_as_lanes import powers_of_two
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule, VectorUnit
from landbridge.sizes.size import Extent, expected_size

#: The alternatives to the chosen tile that a report names.
_SHOWN = 3


def schedule_text(nest: Nest, sched: Schedule) -> str:
    """Returns a description of ``sched`` of ``nest``: ``"6x4 block of 16 lanes, sums over 64x3x3"``."""
    m_size, n_size = _tile(sched.m_runs), _tile(sched.n_runs)
    if sched.lane is None:
        lanes = "scalars"
    elif sched.horizontal:
        lanes = f"{sched.lanes} lanes along the sum"
    else:
        lanes = f"{sched.lanes} lanes"
    parts = [f"{m_size}x{n_size} block of {lanes}"]
    if nest.reduction is not None:
        parts.append("sums over " + ("x".join(str(nest.dims[d].extent) for d in sched.inner) or "1"))
    else:
        parts.append("each element on its own")
    if sched.partial_sums > 1:
        parts.append(f"{sched.partial_sums} partial sums")
    return ", ".join(parts)


def weighed_text(nest: Nest, sched: Schedule, machine: VectorUnit) -> tuple[str, ...]:
    """Returns the tiles with the least estimated cycles, the chosen one included, relative to the best."""
    if nest.reduction is None:
        return ()
    overlaps = sched.m_runs[0].last is not None
    cut = row_cut(nest, sched.m_dim, sched.lane, sched.lanes, repeats=overlaps)
    weighed = sorted(
        weighed_blocks(
            TileSpace(
                cut.pieces,
                cut.most,
                expected_size(_covered(sched.n_runs)),
                machine.registers,
                sched.iterations,
                machine.beyond_l2(nest, sched.lane, sched.m_dim),
                sched.scalars or sched.vectors,
                machine.l1_rows(nest, sched.lane, sched.m_dim, sched.inner),
                powers_of_two(sched.lanes) if sched.rows_are_lanes else (),
                machine.core,
            )
        )
    )
    if len(weighed) < 2:
        return ()
    best = weighed[0][0]
    return tuple(f"{r}x{c}: {100 * cost / best:.0f} %" for cost, (r, c) in weighed[: _SHOWN + 1])


def _tile(runs: Sequence[Run]) -> int:
    return max((run.tile for run in runs), default=1)


def _covered(runs: Sequence[Run]) -> Extent:
    """Returns how many column vectors ``runs`` cover."""
    return sum((run.count * run.tile for run in runs), 0)
