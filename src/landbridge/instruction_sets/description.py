"""The description of an instruction set: everything in Landbridge that depends on it."""

from __future__ import annotations

from landbridge.errors import ExecutableError
from landbridge.instruction_sets.c_language import CLanguage
from landbridge.instruction_sets.code_forms import CodeForms
from landbridge.instruction_sets.cpus import Cpus
from landbridge.instruction_sets.elf import Elf
from landbridge.instruction_sets.processor import Processor
from landbridge.instruction_sets.runtime_source import RuntimeSource
from landbridge.instruction_sets.schedules import Schedules
from landbridge.records import record


@record(frozen=True)
class InstructionSet:
    """An instruction set whose processors are little-endian and have addresses of 64 or 32 bits.

    ``name`` is what triples of LLVM begin with, and ``aliases`` are further names of it in triples and in ``uname -m``.
    ``wide_kernels`` are names in ``uname -m`` of kernels with addresses of 64 bits, under which processes of 32 bits
    are of this instruction set. ``environment`` is the last part of triples of Linux. ``keeps_denormals``: vectors can
    compute with denormal floats. ``flushes_denormals``: it can take them for zeros; else it computes with them,
    whatever a target says. ``elf`` links objects and writes libraries, and ``code`` is the few functions that are
    written without a compiler; None where no libraries are written. ``cpus`` are LLVM's CPUs, their features and what
    they are good at, ``schedules`` what loops are chosen by, and ``c_language`` the C compiler's part. ``runtime`` is
    the source that only this instruction set has, and ``processor`` tells what the processor of a running machine can
    do.
    """

    name: str
    aliases: tuple[str, ...]
    elf: Elf
    code: CodeForms | None
    cpus: Cpus
    schedules: Schedules
    c_language: CLanguage
    runtime: RuntimeSource
    processor: Processor
    environment: str = "gnu"
    keeps_denormals: bool = True
    wide_kernels: tuple[str, ...] = ()
    flushes_denormals: bool = True

    @property
    def triple(self) -> str:
        """Returns LLVM's triple of Linux on this instruction set."""
        return f"{self.name}-unknown-linux-{self.environment}"

    def for_libraries(self, subject: str) -> CodeForms:
        """Returns ``code``; raises ExecutableError, which says that ``subject`` cannot be written, where it is None."""
        if self.code is None:
            raise ExecutableError(
                f"{subject} cannot be written for {self.name} yet; save an .lbx file for landbridge.load"
            )
        return self.code
