"""CPUs of AArch64 by LLVM's names."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from landbridge.instruction_sets.aarch64.features import FLAGS, OF_CPU
from landbridge.instruction_sets.cpus import Cpus, Vectors
from landbridge.instruction_sets.isa import Isa

#: Offsets of AArch64's loads are whole multiples from 0 to 4095, or from -256 to 255 bytes (Arm Architecture
#: Reference Manual, C6.2, LDR and LDUR).
_REACH_BACK = 256
#: Bits of SVE's shortest registers; all others are of a multiple (Arm Architecture Reference Manual, B1.2).
_SVE_GRANULE = 128


def sve_flags(vector_bits: int, flags: Sequence[str]) -> tuple[str, ...]:
    """Returns ``flags`` of AArch64, with the length of SVE registers that code for vectors of ``vector_bits`` assumes,
    if any.
    """
    if "sve" in flags and vector_bits > _SVE_GRANULE:
        return tuple(sorted({*flags, f"sve{vector_bits}"}))
    return tuple(flags)


def _vectors(features: Collection[str]) -> Vectors:
    return Vectors(128, 32)


def _properties(vector_bits: int, flags: Sequence[str]) -> Isa:
    """Returns the properties of a CPU with ``flags``; fma and half are part of the first version."""
    width = vector_bits // _SVE_GRANULE
    known = f"vscale_range({width},{width})" if "sve" in flags and width > 1 else ""
    dots = "usdot" if "i8mm" in flags else "sdot" if "asimddp" in flags else ""
    return Isa(
        vector_bits,
        slow_division=True,
        extrema=True,
        many_bases=0,
        reach_back=_REACH_BACK,
        attributes=known,
        dots=dots,
        dot_bits=_SVE_GRANULE if dots else 0,
        pairs="saddlp",
        pair_bits=_SVE_GRANULE,
    )


CPUS = Cpus(FLAGS, OF_CPU, "generic", _vectors, _properties, sve_flags)
