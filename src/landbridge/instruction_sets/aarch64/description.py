"""The description of AArch64."""

from __future__ import annotations

from landbridge.instruction_sets.aarch64.c_language import C_LANGUAGE
from landbridge.instruction_sets.aarch64.code_forms import CODE
from landbridge.instruction_sets.aarch64.cpus import CPUS
from landbridge.instruction_sets.aarch64.processor import PROCESSOR
from landbridge.instruction_sets.aarch64.relocations import ELF
from landbridge.instruction_sets.description import InstructionSet
from landbridge.instruction_sets.runtime_source import RuntimeSource
from landbridge.instruction_sets.schedules import Schedules

AARCH64 = InstructionSet(
    name="aarch64",
    aliases=("arm64",),
    elf=ELF,
    code=CODE,
    cpus=CPUS,
    schedules=Schedules(lane_bits=128),
    c_language=C_LANGUAGE,
    runtime=RuntimeSource(
        __package__,
        futex=98,
        spin=1_000,
        # Of FPCR: rounding to nearest, no traps; flush with FZ (bit 24), for inputs and results of f32 and f64.
        keep=0,
        flush=1 << 24,
        unset=-1,
    ),
    processor=PROCESSOR,
)
