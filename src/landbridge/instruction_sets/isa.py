"""The properties of an instruction set's code that the printer of LLVM IR uses."""

from __future__ import annotations

from landbridge.records import record

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
    of 2, given the exponents; 0 if there is none. ``blend_bits``: the vectors for which a mask in a register selects
    each lane from one of two vectors faster than the shuffle that LLVM takes; 0 if there are none. ``address_bits``:
    those of an address, which loops count in. ``advances``: accesses add to the register of their address at no cost,
    and cannot add a constant to what they access: innermost loops carry pointers.
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
    blend_bits: int = 0
    address_bits: int = 64
    advances: bool = False
