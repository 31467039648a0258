"""Makes a code image of a module of lowered functions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from landbridge.codegen.cpu_runtime.object_code import keep_runtime, runtime_job, runtime_object
from landbridge.codegen.functions import call_groups, callees, is_kernel
from landbridge.codegen.link import link_objects, only_linked
from landbridge.codegen.llvm.compile_jobs import Job, Jobs
from landbridge.codegen.llvm.isa import isa_of, required_flags
from landbridge.codegen.llvm.machine import Machine
from landbridge.codegen.llvm.print_ir import print_functions, uses_vectors
from landbridge.errors import CodegenError
from landbridge.executable.parts import CodeImage
from landbridge.instruction_sets.description import InstructionSet
from landbridge.instruction_sets.registry import instruction_set, is_known
from landbridge.targets.cpu_options import flushes_denormals
from landbridge.targets.elsewhere import SOURCE
from landbridge.targets.llvm_cpu import architecture, has_glibc, other_system, system

if TYPE_CHECKING:
    from landbridge.targets.target import Target

#: Ends of triples whose pointers have 32 bits: gnu_ilp32, gnux32, muslx32.
_SHORT_POINTERS = ("ilp32", "x32")


def generate_image(module: ModuleOp, target: Target) -> CodeImage:
    """Returns the linked image of all functions of ``module`` and of the runtime; raises CodegenError."""
    with closing(BegunImage(target)) as begun:
        return begun.finish(module)


class BegunImage:
    """The image of one target, of which about ``count`` functions are compiled before all of them exist.

    Raises CodegenError for a target that has none. Its owner calls ``close`` in any case.
    """

    def __init__(self, target: Target, count: int = 0) -> None:
        self._target, self._machine = target, machine_of(target)
        self._name = architecture(target.mtriple)
        flags = required_flags(self._name, target.mcpu, target.mattr)
        described = instruction_set(self._name)
        self._flags = described.cpus.required(target.vector_bits, flags)
        self._flushes = described.flushes_denormals and flushes_denormals(target.options)
        self._isa = isa_of(self._name, target.vector_bits, self._flags)
        self._jobs = Jobs(self._machine, expected=count)
        runtime = runtime_job(self._name)
        self._runtime = None if runtime is None else self._jobs.add(runtime)
        self._values: dict[func.FuncOp, int] = {}

    def add(self, function: func.FuncOp) -> None:
        """Starts to compile ``function``, which must not change; raises CodegenError, as ``finish`` does again."""
        if is_kernel(function) and not callees(function):
            self._values[function] = self._job([function])

    def finish(self, module: ModuleOp) -> CodeImage:
        """Returns the image of all functions of ``module``, those that were added among them; raises CodegenError."""
        indices = [self._number(group) for group in call_groups(module, self._values)]
        if self._runtime is None:
            objects = [runtime_object(self._name), *self._jobs.objects(indices)]
        else:
            objects = self._jobs.objects([self._runtime, *indices])
            keep_runtime(self._name, objects[0])
        linked = link_objects(objects, self._name)
        return CodeImage(
            isa=linked.isa,
            code=linked.code,
            symbols=linked.symbols,
            imports=linked.imports,
            relocations=linked.relocations,
            features=self._flags,
            flushes_denormals=self._flushes,
            slots_start=linked.slots_start,
            slot_references=linked.slot_references,
        )

    def close(self) -> None:
        """Stops all processes that work on it."""
        self._jobs.close()

    def _number(self, group: Sequence[func.FuncOp]) -> int:
        known = self._values.get(group[0]) if len(group) == 1 else None
        return self._job(group) if known is None else known

    def _job(self, group: Sequence[func.FuncOp]) -> int:
        return self._jobs.add(Job(print_functions(group, self._isa), vectorize=not any(map(uses_vectors, group))))


def _check_environment(described: InstructionSet, target: Target) -> None:
    """Raises CodegenError for a triple whose functions are called in another way than those of ``described``: that is
    what the end of its last part says, as in ``gnueabi``.
    """
    calls = described.environment.removeprefix("gnu")
    declared = [part.removeprefix("gnu") for part in system(target.mtriple) if part.startswith("gnu")]
    if calls and any(ending != calls for ending in declared):
        raise CodegenError(
            f"code for {described.name} passes floats in their own registers, as {described.environment} says, and "
            f"-mtriple={target.mtriple} names another way; legal: -mtriple={described.name}-linux-"
            f"{described.environment}, for a system of that kind (Debian's armhf), in the place of {str(target)!r}"
        )


def machine_of(target: Target) -> Machine:
    """Returns LLVM's description of ``target``; raises CodegenError unless its instruction set can be linked."""
    isa = architecture(target.mtriple)
    if not is_known(isa):
        raise CodegenError(f"code for {isa} {only_linked(str(target), isa)}")
    if not has_glibc(target.mtriple):
        raise CodegenError(other_system(target.mtriple))
    if any(part.endswith(_SHORT_POINTERS) for part in system(target.mtriple)):
        raise CodegenError(
            f"kernels have pointers of 64 bits, and -mtriple={target.mtriple} names shorter ones; legal: "
            f"-mtriple={isa}-linux-gnu, in the place of {str(target)!r}"
        )
    described = instruction_set(isa)
    _check_environment(described, target)
    refusal = described.cpus.refusal(target.mcpu, target.mattr)
    if refusal:
        raise CodegenError(f"target 'llvm': {refusal}, in the place of {str(target)!r}; or {SOURCE}")
    if not (described.keeps_denormals or flushes_denormals(target.options)):
        raise CodegenError(
            f"vectors of {isa} take denormal floats for zeros, and -denormals=keep requires to compute with them; "
            "leave it out, or choose another processor"
        )
    baseline = described.cpus.baseline
    if missing := [name for name in baseline if f"-{name}" in target.mattr]:
        raise CodegenError(
            f"-mattr=-{missing[0]}: programs of Linux on {isa} need {', '.join(baseline)}; leave it out of "
            f"{str(target)!r}"
        )
    # The environment part of a triple names no ISA; Linux ELF is what the image format holds.
    features = (*(f"+{name}" for name in baseline), *described.cpus.tuning, *target.mattr)
    return Machine(described.triple, target.mcpu, ",".join(features))
