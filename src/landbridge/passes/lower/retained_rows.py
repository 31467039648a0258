"""How many rows of a register block L1 keeps a line of each of.

A block takes one number of each of its rows an iteration, and the next ones of the same lines in the iterations after
it. Where rows begin a multiple of 4 KiB apart, all of these lines are of one set: Zen 4 keeps 8 of a set, and of 14
rows every number then comes from the next cache. 64 rows of 1024 numbers reach 73 % of its peak in blocks of 14, 89 in
blocks of 8, and 90 in either where a row has 16 numbers more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.nest import Nest
from landbridge.sizes.size import expected_size
from landbridge.targets.machine import LINE_BYTES

#: Bytes of an x86-64 CPU's nearest cache that lie in different sets: what a page has, as it is looked up before the
#: page's address is known (32 KiB of 8 lines a set, 48 KiB of 12).
_WAY = 4096


def retained_rows(
    nest: Nest, lane: int | None, rows: int | None, inner: Sequence[int], l1_bytes: int, most: int
) -> int:
    """The most rows, up to ``most``, whose lines an L1 cache of ``l1_bytes`` keeps from one iteration to the next."""
    main = nest.reduction
    if main is None or rows is None or not inner:
        return most
    # Lanes are summed: vectors that begin anywhere share lines with the next ones.
    if lane is not None and lane in inner:
        inner, lane = (lane,), None
    steps = [
        expected_size(r.index.coeff(rows)) * r.item_bytes
        for r in main.reads
        if isinstance(r, ElementAccess) and r.uses(rows) and not (lane is not None and r.uses(lane))
        and not r.index.nonlinear_in(rows)
        and 0 < abs(expected_size(r.index.coeff(inner[-1]))) * r.item_bytes < LINE_BYTES
    ]  # fmt: skip
    for number in range(1, most + 1):
        lines = {(i, row * step // LINE_BYTES) for i, step in enumerate(steps) for row in range(number)}
        if max(Counter(line % (_WAY // LINE_BYTES) for _, line in lines).values(), default=0) > l1_bytes // _WAY:
            return number - 1
    return most
