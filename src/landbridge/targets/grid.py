"""GridLimits: what a Target declares of kernels on a grid of workgroups, to choose launch shapes by.

A target runs grids if its kind has that form. Options that a kind does not have default to what every conformant Vulkan
1.0 and OpenCL 1.2 device guarantees (Vulkan 1.3 specification, table "Required Limits"; OpenCL 3.0 specification, table
5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from landbridge.records import record
from landbridge.targets.target import Target

if TYPE_CHECKING:
    from landbridge.targets.target import Target


@record(frozen=True)
class GridLimits:
    """The limits of one grid target.

    ``workgroup_size``: work-items of a workgroup (option ``max-workgroup-size``). ``workgroups``: workgroups along one
    dimension of a launch (``max-workgroups``). ``cores``: units that run workgroups concurrently (``num-cores``).
    ``local_bytes``: memory that a workgroup shares (``local-memory-bytes``). ``core_vectors``: a workgroup is one
    thread's work on a CPU (``device-class=cpu``), so that each work-item computes on vectors of ``vector_bits``, in
    ``vector_registers`` registers. ``buffers``: the most that one kernel may take (``max-storage-buffers``). ``fp64``,
    ``int64`` and ``small_elements`` (8 and 16 bits): types that kernels can compute in besides those of 32 bits.
    ``double_math``: all functions of f64, not exp, log and pow alone (``fp64-math``).
    """

    workgroup_size: int
    workgroups: int
    cores: int
    local_bytes: int
    core_vectors: bool
    vector_bits: int
    vector_registers: int
    buffers: int
    fp64: bool
    double_math: bool
    int64: bool
    small_elements: bool


def grid_limits(target: Target) -> GridLimits | None:
    """Returns the limits of ``target``; None if it runs no grids."""
    options = target.options
    if target.form != "grid":
        return None

    def number(name: str, default: int) -> int:
        value = options.get(name, default)
        return value if isinstance(value, int) else default

    return GridLimits(
        workgroup_size=number("max-workgroup-size", 128),
        workgroups=number("max-workgroups", 65535),
        cores=number("num-cores", 8),
        local_bytes=number("local-memory-bytes", 16 << 10),
        core_vectors=options.get("device-class") == "cpu",
        vector_bits=number("vector-bits", 128),
        vector_registers=number("vector-registers", 16),
        buffers=number("max-storage-buffers", 64),
        fp64=bool(options.get("fp64", False)),
        double_math=bool(options.get("fp64-math", True)),
        int64=bool(options.get("int64", True)),
        small_elements=bool(options.get("small-elements", True)),
    )


def takes_open_extents(target: Target) -> bool:
    """Returns whether ``target`` compiles kernels with open extents: loops and vectors of a CPU do, grids do not
    yet."""
    return grid_limits(target) is None and target.form == "vectors"
