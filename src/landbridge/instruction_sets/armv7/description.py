"""The description of ARMv7-A, with NEON and parameters of functions in its registers (Debian's armhf)."""

from __future__ import annotations

from landbridge.instruction_sets.armv7.c_language import C_LANGUAGE
from landbridge.instruction_sets.armv7.code_forms import CODE
from landbridge.instruction_sets.armv7.cpus import CPUS
from landbridge.instruction_sets.armv7.processor import PROCESSOR
from landbridge.instruction_sets.armv7.relocations import ELF
from landbridge.instruction_sets.description import InstructionSet
from landbridge.instruction_sets.runtime_source import RuntimeSource
from landbridge.instruction_sets.schedules import Schedules

ARMV7 = InstructionSet(
    name="armv7",
    # "arm" is Debian's, whose armhf begins with ARMv7-A. A kernel of AArch64 calls itself armv8l towards processes of
    # 32 bits that ask for it, and aarch64 towards the others.
    aliases=("arm", "armv7a", "armv7l", "armv8l", "armhf"),
    wide_kernels=("aarch64", "arm64"),
    environment="gnueabihf",
    keeps_denormals=False,
    elf=ELF,
    code=CODE,
    cpus=CPUS,
    schedules=Schedules(lane_bits=128),  # VMLA by scalar
    c_language=C_LANGUAGE,
    runtime=RuntimeSource(
        __package__,
        futex=240,
        spin=1_000,
        # Of FPSCR: rounding to nearest, no traps; flush with FZ (bit 24). Vectors flush in either case.
        keep=0,
        flush=1 << 24,
        unset=-1,
    ),
    processor=PROCESSOR,
)
