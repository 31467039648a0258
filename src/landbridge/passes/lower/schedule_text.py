"""Describes schedules in reports: what was chosen for each nest of a kernel, and the alternatives."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.passes.lower.measured_tiles import MeasuredTiles, Tile
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.runs import Run
from landbridge.passes.lower.schedule import Schedule

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


def weighed_text(sched: Schedule, measured: MeasuredTiles | None = None) -> tuple[str, ...]:
    """Returns the first of the candidates that ``sched`` was chosen from, itself first, with their predicted cycles:
    ``"6x4: 12,345 cycles"``, and what a call took where it was ``measured``. Empty if there was no other one.
    """
    if len(sched.candidates) < 2:
        return ()
    seconds = dict(measured.seconds) if measured is not None else {}
    shown = {tile: number < _SHOWN + 1 or tile in seconds for number, (tile, _) in enumerate(sched.candidates)}
    return tuple(_weighed(tile, cycles, seconds.get(tile)) for tile, cycles in sched.candidates if shown[tile])


def _weighed(tile: Tile, cycles: float, seconds: float | None) -> str:
    time = "" if seconds is None else f", {1e6 * seconds:.1f} us measured"
    return f"{tile[0]}x{tile[1]}: {cycles:,.0f} cycles{time}"


def _tile(runs: Sequence[Run]) -> int:
    return max((run.tile for run in runs), default=1)
