"""The instruction set and features of the processor under this process."""

from __future__ import annotations

import os
import struct
from functools import cache

from landbridge.instruction_sets.processor import from_cpuinfo
from landbridge.instruction_sets.registry import instruction_set, is_known, running_name


@cache
def isa() -> str:
    """Returns the instruction set's name, as in LLVM triples: ``x86_64``, ``aarch64``, ``riscv64``."""
    return running_name(os.uname().machine.lower(), 8 * struct.calcsize("P"))


@cache
def features() -> frozenset[str]:
    """Returns the CPU's features by Linux's names, those of ``/proc/cpuinfo``; empty where they are not known.

    On x86-64 without ``/proc`` they are the ones that the C library has found, of those that compiled code depends on.
    Where there is SVE, one is ``sve`` with the bits of its registers, such as ``sve256``.
    """
    return instruction_set(isa()).processor.features() if is_known(isa()) else from_cpuinfo()
