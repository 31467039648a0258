"""Tells which targets can compile programs with open extents, known only at run time."""

from __future__ import annotations

from landbridge.targets.grid import grid_limits
from landbridge.targets.target import Target


def takes_open_extents(target: Target) -> bool:
    """Returns whether ``target`` compiles kernels with open extents: loops and vectors of a CPU do, grids do not
    yet."""
    return grid_limits(target) is None and target.form == "vectors"
