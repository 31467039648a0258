"""CPUs of RISC-V by LLVM's names."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from landbridge.instruction_sets.cpus import Cpus, Vectors
from landbridge.instruction_sets.isa import Isa
from landbridge.instruction_sets.riscv64.features import BASELINE, FLAGS, OF_CPU, required, vector_bits_of

#: Without vectors a number of 32 bits is in one of 32 registers: a vector of two, which kernels work on at least, takes
#: two of them.
_SCALAR = Vectors(64, 16)


#: Instructions work on groups of two registers, unless one is as long: fewer are fetched and issued. With registers of
#: 128 bits PP-OCR's direction network takes 6.5 million instructions, 10.7 without groups, and SqueezeNet 112 and 186.
_LONG_ENOUGH = 512


def vectors_of(features: Collection[str]) -> Vectors:
    """Returns the vector registers of a CPU with ``features`` of LLVM: groups of two, or single ones."""
    bits = vector_bits_of(frozenset(features))
    if not bits:
        return _SCALAR
    return Vectors(2 * bits, 16) if bits < _LONG_ENOUGH else Vectors(bits, 32)


def _properties(vector_bits: int, flags: Sequence[str]) -> Isa:
    half = "zvfhmin" if "v" in flags else "zfhmin"
    return Isa(vector_bits, half=not {half, half.removesuffix("min")}.isdisjoint(flags), many_bases=0)


CPUS = Cpus(FLAGS, OF_CPU, "generic", vectors_of, _properties, required, baseline=BASELINE)
