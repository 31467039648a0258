"""What the choice of loops depends on."""

from __future__ import annotations

from landbridge.records import record


@record(frozen=True)
class Schedules:
    """The properties of an instruction set's CPUs by which loops are scheduled.

    ``lane_bits``: bits of the vectors that an instruction multiplies by one lane of another; 0 where none does.
    ``fits_caches``: tiles are fitted to the caches, as was measured on such CPUs. ``timed``: schedules of LLVM's code
    were timed on such CPUs: prefetches, unrolled loops and full-width products. ``sums_in_factors``: LLVM computes a
    sum plus the product of two vectors in the register of a factor, and copies it, so that each sum of a loop takes two
    registers. ``unrolled``: how many iterations of a sum are unrolled in tiles of several rows, however short its loop
    is. What differs between CPUs of an instruction set is in ``targets/machine.py``.
    """

    lane_bits: int = 0
    fits_caches: bool = False
    timed: bool = False
    sums_in_factors: bool = False
    unrolled: int = 1
