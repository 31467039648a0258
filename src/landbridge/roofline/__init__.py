"""Compares kernels with the limits of the machine that they ran on, as data and as a drawing.

The roofline model: a kernel takes no less than its arithmetic at the peak, nor than its bytes at the bandwidth of
where they lie (Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore
architectures", 2009). Pure data in, text out.
"""

from __future__ import annotations

from landbridge.roofline.limits import Level, MachineLimits
from landbridge.roofline.timed_kernel import TimedKernel, roof_share

__all__ = ["Level", "MachineLimits", "TimedKernel", "roof_share"]
