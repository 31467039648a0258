"""The commands of a recording: launches and copies, with the positions of the regions that they use."""

from __future__ import annotations

from collections.abc import Mapping

import pyopencl as cl

from landbridge.devices.opencl.modules import Grid
from landbridge.records import record


@record
class RecordedLaunch:
    """A launch; ``positions`` are those of its arguments that are regions, by argument."""

    kernel: cl.Kernel
    name: str
    grid: Grid
    block: Grid
    positions: Mapping[int, int]


@record
class RecordedCopy:
    """A copy between the regions of two positions."""

    source: int
    target: int
    nbytes: int
