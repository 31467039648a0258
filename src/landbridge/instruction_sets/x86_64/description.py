"""The description of x86-64."""

from __future__ import annotations

from landbridge.instruction_sets.description import InstructionSet
from landbridge.instruction_sets.runtime_source import RuntimeSource
from landbridge.instruction_sets.schedules import Schedules
from landbridge.instruction_sets.x86_64.c_language import C_LANGUAGE
from landbridge.instruction_sets.x86_64.code_forms import CODE
from landbridge.instruction_sets.x86_64.cpus import CPUS
from landbridge.instruction_sets.x86_64.processor import PROCESSOR
from landbridge.instruction_sets.x86_64.relocations import ELF

X86_64 = InstructionSet(
    name="x86_64",
    aliases=("amd64",),
    elf=ELF,
    code=CODE,
    cpus=CPUS,
    schedules=Schedules(
        fits_caches=True,
        timed=True,
    ),
    c_language=C_LANGUAGE,
    runtime=RuntimeSource(
        __package__,
        futex=202,
        # Cycles of the time-stamp counter, which runs at 2 to 3 GHz.
        spin=50_000,
        # Of MXCSR: no flags, no traps, rounding to nearest; flush with denormals-are-zero (bit 6), flush-to-zero (15).
        keep=0x1F80,
        flush=0x9FC0,
        unset=0,
    ),
    processor=PROCESSOR,
)
