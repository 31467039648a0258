"""CpuModel: the machine model of a CPU for schedules and reports, with its registers, caches and arithmetic.

Facts of a target come from its options. What no option says is an assumption that holds for the CPUs of the last ten
years: two pipes for multiply-adds, each four cycles deep (Intel, "Optimization Reference Manual", table of Skylake's
and later ports; AMD, "Software Optimization Guide" for families 17h, 19h and 1Ah: 4 cycles; Arm, "Neoverse V1 Software
Optimization Guide": FMLA 4). A block of fewer accumulators than ``FMA_PIPES * FMA_LATENCY`` waits for its own sums.
"""

from __future__ import annotations

from landbridge.records import record
from landbridge.targets.host_caches import cache_bytes
from landbridge.targets.target import Target

FMA_PIPES = 2
FMA_LATENCY = 4
#: Bytes of a cache line: x86-64's and nearly all of AArch64's.
LINE_BYTES = 64


@record(frozen=True)
class CpuModel:
    """The model of a core: bytes of a vector, number of vector registers, and bytes of its caches, L1 first.

    ``shared_bytes``: the last cache, which cores share; 0 if none is known.
    """

    vector_bytes: int
    registers: int
    l1_bytes: int
    l2_bytes: int
    shared_bytes: int

    @property
    def levels(self) -> tuple[tuple[str, int], ...]:
        """Returns the memory levels: the name of each cache and its capacity, each larger than the one before."""
        named = (("L1", self.l1_bytes), ("L2", self.l2_bytes), ("L3", self.shared_bytes))
        found: list[tuple[str, int]] = []
        for name, nbytes in named:
            if nbytes > (found[-1][1] if found else 0):
                found.append((name, nbytes))
        return tuple(found)


def cpu_model(target: Target) -> CpuModel:
    """Returns the model of the core that ``target`` compiles for, with the last-level cache of this host."""
    return CpuModel(
        vector_bytes=target.vector_bits // 8,
        registers=target.vector_registers,
        l1_bytes=target.l1_bytes,
        l2_bytes=target.l2_bytes,
        shared_bytes=cache_bytes(level=3) or 0,
    )
