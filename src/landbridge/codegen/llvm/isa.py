"""Maps LLVM's CPU names and features to the flags of Linux (``/proc/cpuinfo``), and derives facts from those."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from landbridge.codegen.llvm import features_aarch64, features_x86_64
from landbridge.records import record

#: By instruction set: LLVM's features and their flags, and the features of CPUs by name.
_FLAGS = {"x86_64": features_x86_64.FLAGS, "aarch64": features_aarch64.FLAGS}
_OF_CPU = {"x86_64": features_x86_64.OF_CPU, "aarch64": features_aarch64.OF_CPU}

#: Metadata of modules that need LLVM's strength reduction, which keeps the addresses of a loop in few registers and
#: takes a fifth to a third of LLVM's time. Kernels are written so that it finds little to do: bases are computed
#: outside of loops, and addresses that differ by a constant share one. It pays if a loop has many bases, for example
#: because strides are words that calls pass.
REDUCED = "!landbridge.strength_reduction = !{}"
#: An address of x86-64 is the sum of two registers and a constant: this many bases and a counter leave some of its 16
#: registers free. Of 36 models, kernels with 9 bases or more took 1.1 to 1.9 times as long without strength reduction,
#: and kernels with fewer 0.93 to 1.0 times. Addresses of AArch64 have no constant in addition to two registers (Arm
#: Architecture Reference Manual, C6.2, LDR).
_MANY_BASES = 7


@record(frozen=True)
class Isa:
    """The properties of an instruction set that the printer uses.

    ``vector_bits``: the bits of a vector register. ``fma`` and ``half``: there are instructions for a fused
    multiply-add and for converting f16. ``slow_division``: a quotient of vectors takes many cycles. ``extrema``: an
    instruction computes the larger of two numbers, or NaN if one is. ``stack_bytes``: the stack alignment of functions
    with vectors, so that each spilled vector is in one cache line; 0 for the system's. ``many_bases``: LLVM's strength
    reduction pays for loops with at least this many addresses that differ by more than a constant. ``reach_back``: how
    many bytes before the address in a register an access may be at no cost; 0 for any number. ``attributes``: further
    attributes of LLVM functions. ``dots`` is the instruction that multiplies bytes and adds four products, ``pairs``
    the way in which two products of 16-bit integers are added, and ``dot_bits`` and ``pair_bits`` the longest vectors
    for them; "" and 0 if there are none. ``scale_bits``: the longest vectors that an instruction multiplies by powers
    of 2, given the exponents; 0 if there is none.
    """

    vector_bits: int
    fma: bool = True
    half: bool = True
    slow_division: bool = False
    extrema: bool = False
    stack_bytes: int = 0
    many_bases: int = _MANY_BASES
    reach_back: int = 0
    attributes: str = ""
    dots: str = ""
    dot_bits: int = 0
    pairs: str = ""
    pair_bits: int = 0
    scale_bits: int = 0


def required_flags(isa: str, cpu: str, features: Sequence[str]) -> tuple[str, ...]:
    """Returns the flags that code compiled for ``cpu`` of ``isa`` with ``features`` (``+name`` / ``-name``) may need,
    sorted.

    A CPU that is not known here adds nothing: its features must be stated.
    """
    on = set(_OF_CPU[isa].get(cpu, ()))
    for feature in features:
        if feature.startswith("+"):
            on.add(feature[1:])
        else:
            on.discard(feature.removeprefix("-"))
    return flags_of(isa, on)


#: Offsets of AArch64's loads are whole multiples from 0 to 4095, or from -256 to 255 bytes (ibid., LDR and LDUR).
_REACH_BACK = 256
#: Bits of SVE's shortest registers; all others are of a multiple (Arm Architecture Reference Manual, B1.2).
_SVE_GRANULE = 128
#: Bits that x86-64 systems align the stack to ("System V Application Binary Interface", 3.2.2). LLVM aligns it further
#: for what a function allocates, but no longer when it finds out that registers do not suffice.
_STACK_BITS = 128


def sve_flags(vector_bits: int, flags: Sequence[str]) -> tuple[str, ...]:
    """Returns ``flags`` of AArch64, with the length of SVE registers that code for vectors of ``vector_bits`` assumes,
    if any.
    """
    if "sve" in flags and vector_bits > _SVE_GRANULE:
        return tuple(sorted({*flags, f"sve{vector_bits}"}))
    return tuple(flags)


def flags_of(isa: str, features: Iterable[str]) -> tuple[str, ...]:
    """Returns the flags of ``features`` that code depends on, sorted."""
    return tuple(sorted(_FLAGS[isa][name] for name in features if name in _FLAGS[isa]))


def isa_of(isa: str, vector_bits: int, flags: Sequence[str]) -> Isa:
    """Returns the Isa of a CPU of instruction set ``isa`` that has ``flags``."""
    if isa == "aarch64":  # fma and half are part of its first version
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
    )
