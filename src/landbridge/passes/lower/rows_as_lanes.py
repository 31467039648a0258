"""Stages after sums whose lanes are combined: their vectors lie along the rows of the tile.

The shuffle tree that combines lanes (`lane_folds.py`) returns the sums of several rows as one vector. Where the stages
after the sums are contiguous along the rows, they use this vector, and store it whole.
"""

from __future__ import annotations

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.image_memory import is_image
from landbridge.passes.lower.lane_body import computes_indices
from landbridge.passes.lower.lane_walk import Walk, lane_guards, walk_of
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.row_memory import in_rows


def rows_may_be_lanes(nest: Nest, lane: int | None, m_dim: int | None, lanes: int) -> bool:
    """Returns whether the stages after a sum over all lanes of ``lane`` may have their lanes along the rows ``m_dim``.

    No iteration of the sum may be left over after its vectors: those are added row by row.
    """
    if lane is None or m_dim is None or nest.dims[lane].extent % lanes != 0:
        return False
    for stage in nest.stages:
        reads = () if stage.reduces else stage.reads
        writes = (w for w, stored in zip(stage.writes, stage.stored, strict=True) if stored)
        if not stage.reduces and computes_indices(stage):
            return False
        if any(walk_of(w, m_dim) is not Walk.ALONG or not _is_plain(w, m_dim) for w in writes):
            return False
        for r in reads:
            if isinstance(r, ElementAccess) and not (
                walk_of(r, m_dim) in (Walk.STAYS, Walk.ALONG) and _is_plain(r, m_dim)
            ):
                return False
    return True


def powers_of_two(most: int) -> tuple[int, ...]:
    """Returns the powers of two from 1 to ``most``."""
    return tuple(1 << bit for bit in range(most.bit_length()))


def _is_plain(a: ElementAccess, m_dim: int) -> bool:
    return not lane_guards(a, m_dim) and not in_rows(a.buffer.type) and not is_image(a.buffer.type)
