"""Which targets make code of programs whose extents are known when the input comes."""

from __future__ import annotations

from landbridge.targets.grid import grid_limits
from landbridge.targets.target import Target


def takes_open_extents(target: Target) -> bool:
    """Whether ``target`` makes code of kernels with open extents: loops and vectors of a CPU do, grids do not yet."""
    return grid_limits(target) is None and target.form == "vectors"
