"""GridLimits: what a Target declares of kernels on a grid of workgroups, to choose launch shapes by.

A target runs grids if its kind has that form. Options that a kind does not have default to what every conformant Vulkan
1.0 and OpenCL 1.2 device guarantees (Vulkan 1.3 specification, table "Required Limits"; OpenCL 3.0 specification, table
5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from landbridge.memory_kind import GLOBAL_SCOPE
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
    ``double_math``: all functions of f64, not exp, log and pow alone (``fp64-math``). ``loop_iterations``: the most
    iterations of loops that a work-item makes before the driver ends them in silence (``max-loop-iterations``); None
    without such a limit. ``local_is_faster``: memory that a workgroup shares is faster than the device's other memory
    (``dedicated-local-memory``).
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
    loop_iterations: int | None = None
    local_is_faster: bool = True


def grid_limits(target: Target) -> GridLimits | None:
    """Returns the limits of ``target``; None if it runs no grids."""
    options = target.options
    if target.form != "grid":
        return None

    iterations = options.get("max-loop-iterations")

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
        loop_iterations=iterations if isinstance(iterations, int) else None,
        local_is_faster=bool(options.get("dedicated-local-memory", True)),
    )


def expected_length(target: Target) -> int:
    """Returns the length that kernels of ``target`` are made for, where only the device knows it in a run.

    Work-items that share a row wait for each other, which pays for long rows. On a CPU that runs them as a GPU would,
    it takes longer than the row: a step of attention over 100 rows takes 5 to 9 ms on lavapipe where rows are shared,
    else 0.6 ms; over 4,000 rows 22 ms, else 16 ms.
    """
    limits = grid_limits(target)
    is_slow = limits is not None and not limits.core_vectors and not limits.local_is_faster
    return 64 if is_slow else 1024


def most_binding_bytes(target: Target) -> int | None:
    """Returns the most bytes of one buffer that a kernel of ``target`` takes; None where no limit is known."""
    return next((kind.max_binding_bytes for kind in target.memory if kind.scope == GLOBAL_SCOPE), None)


def takes_open_extents(target: Target) -> bool:
    """Returns whether ``target`` compiles kernels with open extents: all forms but plain loops over elements do."""
    return target.form in ("vectors", "grid")
