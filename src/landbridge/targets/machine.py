"""Machine models of CPUs for schedules and reports: a table of cores by LLVM's names, and what a target says itself.

A new CPU is an entry of ``CORES``, with what differs from the defaults of ``CpuCore`` and its source. Sizes of vectors
and caches are options of targets. What an instruction set has, whichever core, is in ``instruction_sets``.
"""

from __future__ import annotations

from collections.abc import Mapping

from landbridge.records import record
from landbridge.targets.host_caches import cache_bytes
from landbridge.targets.target import Target

#: Bytes of a cache line: x86-64's and nearly all of AArch64's.
LINE_BYTES = 64
#: The bits within which instructions interleave two vectors; longer vectors consist of pieces of so many (x86-64:
#: ``unpcklps`` in each lane of 128 bits; AArch64: ``zip1`` of 128 bits).
SHUFFLE_BITS = 128


@record(frozen=True)
class CpuCore:
    """What no option of a target says of a core. The defaults hold for the CPUs of the last ten years.

    ``fma_pipes`` multiply-adds of vectors begin in a cycle, and each takes ``fma_latency`` cycles (Intel, "Optimization
    Reference Manual", table of Skylake's and later ports: 2 and 4; AMD, "Software Optimization Guide" for families 17h,
    19h and 1Ah: 2 and 4; Arm, "Neoverse V1 Software Optimization Guide": FMLA 4). ``vector_passes``: how often the
    longest vector goes through a pipe. ``l1_way_bytes``: the bytes of one way of L1, which are a page on x86-64, as the
    set is looked up before the physical address is known (32 KiB with 8 ways, 48 KiB with 12). ``l2_sets``: the number
    of sets of L2, at least; 1024 is that of Skylake-X, Ice Lake, Zen 2 and Zen 3, and later CPUs have more.
    """

    fma_pipes: int = 2
    fma_latency: int = 4
    vector_passes: int = 1
    l1_way_bytes: int = 4096
    l2_sets: int = 1024

    @property
    def multiply_adds_in_flight(self) -> int:
        """Returns how many multiply-adds run at a time; a tile of fewer accumulators waits for its own sums."""
        return self.fma_pipes * self.fma_latency


#: The cores that differ from the defaults of ``CpuCore``, by the name that LLVM has for them (``-mcpu``).
CORES: Mapping[str, CpuCore] = {
    # AMD, "Software Optimization Guide" for family 19h, models 10h to 1Fh: a vector of 64 bytes goes as two halves.
    "znver4": CpuCore(vector_passes=2),
}


def cpu_core(mcpu: str) -> CpuCore:
    """Returns the core that LLVM calls ``mcpu``, with the defaults if the table has no entry for it."""
    return CORES.get(mcpu, CpuCore())


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
