"""Facts of targets that run kernels over a grid of workgroups: the options their kinds share, and their reading.

A target kind is one of these when its options hold ``GRID_OPTIONS``; presence is the capability.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from landbridge.target.kind import Option

if TYPE_CHECKING:
    from landbridge.target.target import Target

#: What every grid target states. Defaults are what each conformant Vulkan 1.x or OpenCL 1.2 full-profile device has.
GRID_OPTIONS = (
    Option("max-workgroup-size", "int", "Work-items of one workgroup.", default=128, minimum=1),
    Option("max-workgroups", "int", "Workgroups along one dimension of a launch.", default=65535, minimum=1),
    Option("local-memory-bytes", "int", "Memory that the work-items of a workgroup share, in bytes.", default=16384),
    Option(
        "runs-on",
        "str",
        "gpu: work-items share vector units and local memory is fast. cpu: a workgroup is one thread's work, and each "
        "work-item computes on vectors of vector-bits in vector-registers.",
        default="gpu",
        choices=("gpu", "cpu"),
    ),
    Option("vector-bits", "int", "Widest vector a work-item computes on, in bits; 32: scalars.", default=128),
    Option("vector-registers", "int", "Vectors a work-item can keep in registers.", default=32, minimum=4),
    Option("fp16", "bool", "Whether 16-bit floats are computed on.", default=False),
    Option("fp64", "bool", "Whether 64-bit floats are computed on.", default=False),
    Option("int64", "bool", "Whether 64-bit integers are computed on.", default=True),
    Option("int16", "bool", "Whether buffers may hold 16-bit elements.", default=True),
    Option("int8", "bool", "Whether buffers may hold 8-bit elements, booleans among them.", default=True),
)


@dataclass(frozen=True)
class GridLimits:
    """The limits of a grid target, from its options: what launch shapes and schedules are chosen by.

    ``vector_bits`` is the widest vector of one work-item; ``on_cpu`` says that a workgroup is one thread's work.
    """

    workgroup_size: int
    workgroups: int
    local_bytes: int
    on_cpu: bool
    vector_bits: int
    vector_registers: int


def grid_limits(target: Target) -> GridLimits | None:
    """The limits of ``target``; None when it runs no grids (CPU targets, whose kernels take a range of tasks)."""
    options = target.options
    if "max-workgroup-size" not in options:
        return None
    number = {name: int(options[name]) for name in _NUMBERS}  # type: ignore[arg-type]  # declared as int
    return GridLimits(*(number[name] for name in _NUMBERS[:3]), options["runs-on"] == "cpu", *_vectors(number))


_NUMBERS = ("max-workgroup-size", "max-workgroups", "local-memory-bytes", "vector-bits", "vector-registers")


def _vectors(number: dict[str, int]) -> tuple[int, int]:
    return number["vector-bits"], number["vector-registers"]
