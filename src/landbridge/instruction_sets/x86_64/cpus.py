"""CPUs of x86-64 by LLVM's names."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from landbridge.instruction_sets.cpus import Cpus, Vectors
from landbridge.instruction_sets.isa import Isa
from landbridge.instruction_sets.x86_64.features import FLAGS, OF_CPU

#: Bits that x86-64 systems align the stack to ("System V Application Binary Interface", 3.2.2). LLVM aligns it further
#: for what a function allocates, but no longer when it finds out that registers do not suffice.
_STACK_BITS = 128


def _vectors(features: Collection[str]) -> Vectors:
    if "avx512f" in features:
        return Vectors(512, 32)
    return Vectors(256 if "avx" in features else 128, 16)


def _properties(vector_bits: int, flags: Sequence[str]) -> Isa:
    longest = 512 if {"avx512_vnni", "avx512vl"} <= set(flags) else 256 if "avx_vnni" in flags else 0
    return Isa(
        vector_bits,
        fma="fma" in flags,
        half="f16c" in flags,
        stack_bytes=vector_bits // 8 if vector_bits > _STACK_BITS else 0,
        dots="vpdpbusd" if longest else "",
        dot_bits=longest,
        pairs="pmaddwd",
        pair_bits=512 if "avx512bw" in flags else 256 if "avx2" in flags else 128,
        scale_bits=512 if "avx512vl" in flags else 0,
        blend_bits=512 if "avx512vl" in flags else 0,
    )


CPUS = Cpus(FLAGS, OF_CPU, "x86-64", _vectors, _properties)
