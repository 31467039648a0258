"""What is compiled for: the facts of mynpu's memory and of its vectors. The compiler never asks the device."""

from __future__ import annotations

from landbridge.memory_kind import MemoryKind
from landbridge.targets import Option, TargetKind

#: What the code generator makes and the device loads.
FORMAT = "mynpu-elf"
ALIGNMENT = 32
CAPACITY = 64 << 20

MEMORY = MemoryKind(
    scope="global",
    host_access="read_write",
    coherent=False,
    coherence_granule=ALIGNMENT,
    pinned=True,
    physically_contiguous=True,
    alignment=ALIGNMENT,
    offset_alignment=ALIGNMENT,
    size_multiple=ALIGNMENT,
    max_bytes=CAPACITY,
    capacity=CAPACITY,
)

MYNPU = TargetKind(
    name="mynpu",
    doc="the device mynpu",
    options=(
        Option("vector-bits", "int", "Bits of a vector register.", 128, minimum=32, power_of_two=True),
        Option("vector-registers", "int", "Vector registers.", 16, minimum=4),
    ),
    device_types=("mynpu",),
    default_for=("mynpu",),
    form="vectors",
    formats=(FORMAT,),
    memory=lambda options: (MEMORY,),
)
