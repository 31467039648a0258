"""From a module of lowered functions to a code image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from landbridge.codegen.cpu_runtime.object_code import with_runtime
from landbridge.codegen.functions import call_groups
from landbridge.codegen.link import link_objects, only_linked
from landbridge.codegen.llvm.compile import Machine
from landbridge.codegen.llvm.compile_jobs import Job
from landbridge.codegen.llvm.isa import isa_of, required_flags, sve_flags
from landbridge.codegen.llvm.print_ir import print_functions, uses_vectors
from landbridge.codegen.relocations.linkages import LINKAGES
from landbridge.errors import CodegenError
from landbridge.executable.parts import CodeImage
from landbridge.targets.cpu_options import flushes_denormals
from landbridge.targets.llvm_cpu import architecture

if TYPE_CHECKING:
    from landbridge.targets.target import Target

#: Parts of triples that name no operating system.
_NO_SYSTEM = ("", "unknown", "none", "pc", "elf", "gnu")
#: Ends of triples whose pointers have 32 bits: gnu_ilp32, gnux32, muslx32.
_SHORT_POINTERS = ("ilp32", "x32")


def generate_image(module: ModuleOp, target: Target) -> CodeImage:
    """The linked image of all functions of ``module`` and of the runtime; raises CodegenError."""
    machine = machine_of(target)
    name = architecture(target.mtriple)
    flags = sve_flags(target.vector_bits, required_flags(name, target.mcpu, target.mattr))
    isa = isa_of(name, target.vector_bits, flags)
    jobs = (
        Job(print_functions(group, isa), vectorize=not any(map(uses_vectors, group))) for group in call_groups(module)
    )
    linked = link_objects(with_runtime(jobs, name, machine))
    return CodeImage(
        isa=linked.isa,
        code=linked.code,
        symbols=linked.symbols,
        imports=linked.imports,
        relocations=linked.relocations,
        features=flags,
        flushes_denormals=flushes_denormals(target.options),
        slots_start=linked.slots_start,
        slot_references=linked.slot_references,
    )


def machine_of(target: Target) -> Machine:
    """What LLVM is told of ``target``; raises CodegenError unless its instruction set can be linked."""
    isa = architecture(target.mtriple)
    if isa not in LINKAGES:
        raise CodegenError(f"code for {isa} {only_linked(str(target))}")
    system = [part for part in target.mtriple.split("-")[1:] if part not in _NO_SYSTEM]
    if system and not any(part.startswith("linux") for part in system):
        raise CodegenError(
            f"code is made for Linux alone, and -mtriple={target.mtriple} names another system; legal: "
            f"-mtriple={isa}-linux-gnu, in the place of {str(target)!r}"
        )
    if any(part.endswith(_SHORT_POINTERS) for part in system):
        raise CodegenError(
            f"kernels have pointers of 64 bits, and -mtriple={target.mtriple} names shorter ones; legal: "
            f"-mtriple={isa}-linux-gnu, in the place of {str(target)!r}"
        )
    # The environment part of a triple names no ISA; Linux ELF is what the image format holds.
    return Machine(f"{isa}-unknown-linux-gnu", target.mcpu, ",".join(target.mattr))
