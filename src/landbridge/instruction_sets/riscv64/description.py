"""The description of RISC-V of 64 bits, with parameters of functions in float registers (RV64GC, lp64d)."""

from __future__ import annotations

from landbridge.instruction_sets.description import InstructionSet
from landbridge.instruction_sets.riscv64.c_language import C_LANGUAGE
from landbridge.instruction_sets.riscv64.code_forms import CODE
from landbridge.instruction_sets.riscv64.cpus import CPUS
from landbridge.instruction_sets.riscv64.processor import PROCESSOR
from landbridge.instruction_sets.riscv64.relocations import ELF
from landbridge.instruction_sets.runtime_source import RuntimeSource
from landbridge.instruction_sets.schedules import Schedules

RISCV64 = InstructionSet(
    name="riscv64",
    aliases=(),
    flushes_denormals=False,
    elf=ELF,
    code=CODE,
    cpus=CPUS,
    # A tile of 4 by 3 groups of registers is 12 multiplications, 7 loads and 3 additions to addresses. VSETVLI, the
    # counter, its branch and the address of the rows, whose loads have an offset, are 4 more for one iteration or two.
    schedules=Schedules(sums_in_factors=True, unrolled=2),
    c_language=C_LANGUAGE,
    runtime=RuntimeSource(
        __package__,
        futex=98,
        spin=1_000,
        # Of fcsr: rounding to nearest, no flags. It has no bit for denormals.
        keep=0,
        flush=0,
        unset=-1,
    ),
    processor=PROCESSOR,
)
