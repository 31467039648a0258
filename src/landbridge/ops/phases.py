"""The phases of a transposed convolution along one axis: dense convolutions whose results are interleaved."""

from __future__ import annotations

from math import gcd

from landbridge.records import record


@record(frozen=True)
class Phases:
    """How result element ``q * stride + r`` is summed: over ``taps`` elements of the data, from ``q + start(r)`` on.

    A tap t of the kernel reaches the results ``o`` with ``o + low == i * stride + t * dilation`` of an element i, so
    results of one phase r share their taps, and neighbours of a phase read neighbours. Phases are ``outer`` times
    ``inner``, r = a * inner + b: window j of it begins at ``q + first + a * shift + j * step``.
    """

    stride: int
    low: int
    kernel: int
    dilation: int
    outer: int
    shift: int
    first: int
    step: int
    taps: int

    @property
    def inner(self) -> int:
        """Returns the number of phases whose windows begin at the same element."""
        return self.stride // self.outer

    @property
    def reach(self) -> int:
        """Returns the farthest element that any phase reads, counted from ``q``."""
        return self.first + (self.outer - 1) * self.shift + (self.taps - 1) * self.step

    def tap(self, phase: int, j: int) -> int | None:
        """Returns the tap of the kernel that window element ``j`` of a phase is; None where it is not in the sum."""
        offset = self.first + phase // self.inner * self.shift + j * self.step
        t, remainder = divmod(phase + self.low - offset * self.stride, self.dilation)
        return t if not remainder and 0 <= t < self.kernel else None


def phases(stride: int, low: int, kernel: int, dilation: int) -> Phases:
    """Returns the phases of an axis, with windows of as few elements as one affine start for all of them allows."""
    reached = [
        sorted(at // stride for t in range(kernel) if (at := r + low - t * dilation) % stride == 0)
        for r in range(stride)
    ]
    found = []
    for outer in (a for a in range(1, stride + 1) if stride % a == 0):
        for shift in (0, 1) if outer > 1 else (0,):
            offsets = {i - r // (stride // outer) * shift for r, offsets_of in enumerate(reached) for i in offsets_of}
            first = min(offsets)
            step = gcd(*(i - first for i in offsets)) or 1
            taps = (max(offsets) - first) // step + 1
            found.append(Phases(stride, low, kernel, dilation, outer, shift, first, step, taps))
    return min(found, key=lambda p: (p.taps, p.outer))
