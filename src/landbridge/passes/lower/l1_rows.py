"""Limits the rows of a tile by the associativity of L1.

In each iteration a tile reads one scalar of each of its rows; later iterations read the other scalars of the same cache
lines. Rows whose stride is a multiple of 4 KiB map to the same set (4K aliasing). Zen 4 has 8 ways, so with 14 such
rows every scalar comes from L2. A product with 64 rows of 1024 elements reaches 73 % of peak with tiles of 14 rows and
89 % with 8; if each row is 16 elements longer, it reaches 90 % with both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.nest import Nest
from landbridge.sizes.size import expected_size
from landbridge.targets.machine import LINE_BYTES


def l1_rows(
    nest: Nest, lane: int | None, m_dim: int | None, inner: Sequence[int], l1_bytes: int, way_bytes: int, most: int
) -> int:
    """Returns the largest number of tile rows, up to ``most``, whose cache lines stay in L1 between iterations.

    L1 has ``l1_bytes``, and each of its ways ``way_bytes``.
    """
    main = nest.reduction
    if main is None or m_dim is None or not inner:
        return most
    # If lanes are summed, vectors that are not aligned share lines with the next ones.
    if lane is not None and lane in inner:
        inner, lane = (lane,), None
    steps = [
        expected_size(r.index.coeff(m_dim)) * r.item_bytes
        for r in main.reads
        if isinstance(r, ElementAccess) and r.uses(m_dim) and not (lane is not None and r.uses(lane))
        and not r.index.nonlinear_in(m_dim)
        and 0 < abs(expected_size(r.index.coeff(inner[-1]))) * r.item_bytes < LINE_BYTES
    ]  # fmt: skip
    for number in range(1, most + 1):
        lines = {(i, row * step // LINE_BYTES) for i, step in enumerate(steps) for row in range(number)}
        if (
            max(Counter(line % (way_bytes // LINE_BYTES) for _, line in lines).values(), default=0)
            > l1_bytes // way_bytes
        ):
            return number - 1
    return most
