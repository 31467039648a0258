"""The scales of a roofline: the ranges of its axes, and where a kernel lies on them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from landbridge.records import record
from landbridge.roofline.limits import MachineLimits
from landbridge.roofline.timed_kernel import TimedKernel

#: The picture, and the room around what is drawn.
WIDTH, HEIGHT = 1240, 720
RIGHT, TOP, BOTTOM = WIDTH - 110, 76, HEIGHT - 60
_LEFT = 90
#: Where kernels without arithmetic stand, left of the others, and the room between them.
STRIP = (_LEFT, 170)
_GAP = 80
#: How many powers of ten of operations a second are drawn at least and at most.
_DECADES = (2, 5)


@record(frozen=True)
class Scales:
    """The ranges of the axes. ``low`` to ``high``: powers of ten of operations a byte. ``bottom`` to ``top``: of
    operations a second. ``left`` is the left end of the plot, right of the strip if there is one.
    """

    low: int
    high: int
    bottom: float
    top: float
    left: float

    def x(self, intensity: float) -> float:
        """Returns the x coordinate of ``intensity``, operations a byte."""
        at = min(max(math.log10(max(intensity, 1e-9)), self.low), self.high)
        return self.left + (at - self.low) / (self.high - self.low) * (RIGHT - self.left)

    def y(self, rate: float) -> float:
        """Returns the y coordinate of ``rate``, operations a second."""
        at = min(max(math.log10(max(rate, 1e-9)), self.bottom), self.top)
        return TOP + (self.top - at) / (self.top - self.bottom) * (BOTTOM - TOP)

    @property
    def slope(self) -> float:
        """Returns the angle, in degrees, of a roof: a decade of operations a second for each of operations a byte."""
        down = (BOTTOM - TOP) / (self.top - self.bottom)
        return -math.degrees(math.atan2(down, (RIGHT - self.left) / (self.high - self.low)))


def scales_of(kernels: Sequence[TimedKernel], limits: MachineLimits) -> Scales:
    """Returns the ranges that contain ``kernels`` with arithmetic, and the ridge points of ``limits``."""
    computing = [kernel for kernel in kernels if kernel.flops and kernel.nbytes and kernel.seconds]
    across = [math.log10(kernel.intensity) for kernel in computing]
    across += [math.log10(limits.flops / level.bandwidth) for level in limits.levels]
    low, high = math.floor(min(across)), math.ceil(max(across))
    top = math.ceil(math.log10(limits.flops) * 4) / 4 + 0.1
    lowest = min((math.log10(kernel.flops_rate) for kernel in computing), default=top)
    least, most = _DECADES
    bottom = top - min(max(math.ceil(top - lowest), least), most)
    left = STRIP[1] + _GAP if any(is_in_strip(kernel) for kernel in kernels) else _LEFT
    return Scales(low, max(high, low + 1), bottom, top, left)


def is_in_strip(kernel: TimedKernel) -> bool:
    """Returns whether ``kernel`` computes nothing, so that it has no operations a byte."""
    return not kernel.flops
