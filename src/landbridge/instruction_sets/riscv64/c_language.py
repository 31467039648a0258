"""C compilers for RISC-V."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from landbridge.instruction_sets.c_language import CLanguage
from landbridge.instruction_sets.cpus import Vectors
from landbridge.instruction_sets.riscv64.cpus import vectors_of
from landbridge.instruction_sets.riscv64.features import FLAGS, LENGTHS, SHORTEST_BITS

#: Bits of the shortest vectors that code may assume, which GCC and Clang define where there are vectors.
_LENGTH = "__riscv_v_min_vlen"


def _features(macros: Mapping[str, str]) -> Iterator[str]:
    """Yields the features whose macros are defined: the C API of RISC-V names each ``__riscv_`` and the extension."""
    yield from (name for name in FLAGS if f"__riscv_{name}" in macros)
    least = int(macros.get(_LENGTH, "0"))
    yield from (name for name, bits in LENGTHS.items() if SHORTEST_BITS < bits <= least)


def _vectors(macros: Mapping[str, str]) -> Vectors:
    return vectors_of(set(_features(macros)))


def _refusal(macros: Mapping[str, str]) -> str:
    bits = macros.get("__riscv_xlen", "unknown")
    if bits != "64":
        return (
            f"makes code for RISC-V with registers of {bits} bits, and programs are for those of 64; legal: a compiler "
            "for them, as in -compiler=riscv64-linux-gnu-gcc"
        )
    if "__riscv_float_abi_double" not in macros:
        return (
            "passes floats in integer registers or those of 32 bits, and programs for riscv64 in registers of 64 bits; "
            "legal: a compiler of the ABI lp64d, as in -compiler=riscv64-linux-gnu-gcc"
        )
    return ""


C_LANGUAGE = CLanguage(
    "__riscv",
    ("-mcmodel=medany", "-mno-relax"),
    _features,
    _vectors,
    further="__riscv_xlen == 64 && defined(__riscv_float_abi_double)",
    refusal=_refusal,
)
