"""Maps LLVM's CPU names and features to the flags of Linux (``/proc/cpuinfo``), and derives facts from those."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from landbridge.instruction_sets.isa import Isa
from landbridge.instruction_sets.registry import instruction_set

#: Metadata of modules that need LLVM's strength reduction, which keeps the addresses of a loop in few registers and
#: takes a fifth to a third of LLVM's time. Kernels are written so that it finds little to do: bases are computed
#: outside of loops, and addresses that differ by a constant share one. It pays if a loop has many bases, for example
#: because strides are words that calls pass.
REDUCED = "!landbridge.strength_reduction = !{}"


def required_flags(isa: str, cpu: str, features: Sequence[str]) -> tuple[str, ...]:
    """Returns the flags that code compiled for ``cpu`` of ``isa`` with ``features`` (``+name`` / ``-name``) may need,
    sorted.

    A CPU that is not known here adds nothing: its features must be stated.
    """
    cpus = instruction_set(isa).cpus
    on = {*cpus.baseline, *cpus.features_of.get(cpu, ())}
    for feature in features:
        if feature.startswith("+"):
            on.add(feature[1:])
        else:
            on.discard(feature.removeprefix("-"))
    return flags_of(isa, on)


def flags_of(isa: str, features: Iterable[str]) -> tuple[str, ...]:
    """Returns the flags of ``features`` that code depends on, sorted."""
    flags = instruction_set(isa).cpus.flags
    return tuple(sorted(flags[name] for name in features if name in flags))


def isa_of(isa: str, vector_bits: int, flags: Sequence[str]) -> Isa:
    """Returns the Isa of a CPU of instruction set ``isa`` that has ``flags``."""
    return instruction_set(isa).cpus.properties(vector_bits, flags)
