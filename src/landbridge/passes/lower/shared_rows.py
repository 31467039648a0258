"""Rows of sums over lanes that all tiles of columns read while L1 holds them.

A task goes from block to block of rows, and computes all columns of a block before it reads the next one. Memory is
then read once, row after row, whatever number of tiles the columns are cut into.
"""

from __future__ import annotations

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.cost import MEMORY_ORDER
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.schedule import Schedule
from landbridge.sizes.size import expected_size


def tiles_of_a_block(nest: Nest, sched: Schedule, l1_bytes: int) -> int:
    """Returns how many tiles of rows all tiles of columns compute before the next rows; 0 where each tile of columns
    computes all rows of a task at once.
    """
    main, m_dim = nest.reduction, sched.m_dim
    if main is None or m_dim is None or sched.n_dim is None or not sched.retained or not l1_bytes:
        return 0
    if len(sched.n_runs) != 1 or sched.n_runs[0].count == 1:
        return 0
    nbytes = 0
    for r in main.reads:
        if isinstance(r, ElementAccess) and r.varies(m_dim):
            if r.varies(sched.n_dim):
                return 0
            nbytes += expected_size(r.index.coeff(m_dim)) * r.item_bytes * sched.m_runs[0].tile
    return max(1, l1_bytes // MEMORY_ORDER.l1_parts_of_rows // max(nbytes, 1))
