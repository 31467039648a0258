"""CPUs of an instruction set as LLVM names them: their features, vector registers and instructions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from landbridge.instruction_sets.isa import Isa
from landbridge.records import record


@record(frozen=True)
class Vectors:
    """The vector registers of a CPU: the width of one in bits, and how many there are."""

    bits: int
    registers: int


def _nothing(cpu: str, features: Sequence[str]) -> str:
    return ""


def _same_flags(vector_bits: int, flags: Sequence[str]) -> tuple[str, ...]:
    return tuple(flags)


@record(frozen=True)
class Cpus:
    """LLVM's CPUs of one instruction set.

    ``flags``: LLVM's features that change which instructions ordinary code may contain, with Linux's names of them
    (``/proc/cpuinfo``). ``features_of``: LLVM's features of each CPU, by its name. ``oldest``: the CPU whose code runs
    on all. ``vectors(features)``: the registers of a CPU with the given features of LLVM. ``properties(vector_bits,
    flags)``: what the printer of LLVM IR has to know of one with the given flags of Linux. ``required(vector_bits,
    flags)``: the flags that code for such vectors needs beyond those. ``refusal(cpu, features)``: why no code is made
    for LLVM's ``cpu`` with ``features`` (``+name`` / ``-name``), and what is legal, as a clause; empty where it is.
    ``tuning``: features that LLVM is given for every CPU, by which it chooses among instructions that all of them have
    and puts them into another order. ``baseline``: LLVM's features that all of these CPUs have where Linux runs on
    them; no target switches one off.
    """

    flags: Mapping[str, str]
    features_of: Mapping[str, tuple[str, ...]]
    oldest: str
    vectors: Callable[[Collection[str]], Vectors]
    properties: Callable[[int, Sequence[str]], Isa]
    required: Callable[[int, Sequence[str]], tuple[str, ...]] = _same_flags
    refusal: Callable[[str, Sequence[str]], str] = _nothing
    tuning: tuple[str, ...] = ()
    baseline: tuple[str, ...] = ()
