"""A lower bound of the peak of every plan."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.planner.buffers import Buffer
from landbridge.planner.views import least


def lower_bound(buffers: Sequence[Buffer]) -> int:
    """Returns the largest sum of live bytes over all steps, or the end of the highest pinned buffer.

    Every offset is a multiple of the smallest alignment, so each live buffer but the topmost takes a whole number of
    such granules; if sizes are multiples of it, this is the plain sum. Bytes that aliases let buffers share count once.
    Raises PlanError for aliases to unknown buffers, or past their end.
    """
    granule = min((b.alignment for b in buffers if b.size), default=1)
    bound = max((b.offset + b.size for b in buffers if b.offset is not None), default=0)
    if any(b.alias is not None for b in buffers):
        return max(bound, lower_bound(least(buffers)))
    # At equal steps a buffer that ends (0) releases its bytes before another (1) takes them.
    events = sorted(event for b in buffers if b.size for event in ((b.start, 1, b.size), (b.end, 0, b.size)))
    live_bytes = 0
    slacks: dict[int, int] = {}  # bytes that rounding adds to a live buffer -> how many such are live
    for _, starts, size in events:
        rounded = -(-size // granule) * granule
        slack = rounded - size
        if starts:
            live_bytes += rounded
            slacks[slack] = slacks.get(slack, 0) + 1
            bound = max(bound, live_bytes - max(slacks))
        else:
            live_bytes -= rounded
            slacks[slack] -= 1
            if not slacks[slack]:
                del slacks[slack]
    return bound
