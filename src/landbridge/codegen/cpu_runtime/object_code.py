"""The machine code of the runtime, which is linked with that of kernels."""

from __future__ import annotations

from landbridge.codegen.cpu_runtime.runtime_ir import runtime_ir
from landbridge.codegen.llvm.compile_jobs import Job, compile_all
from landbridge.codegen.llvm.machine import Machine
from landbridge.instruction_sets.registry import instruction_set

#: By instruction set, once they are made: no two compiles of a process make the same.
_objects: dict[str, bytes] = {}


def runtime_object(isa: str) -> bytes:
    """Returns the relocatable object of the runtime for Linux on the instruction set ``isa``; raises CodegenError."""
    job = runtime_job(isa)
    return _objects[isa] if job is None else keep_runtime(isa, *compile_all([job], _machine(isa)))


def runtime_job(isa: str) -> Job | None:
    """Returns the job that compiles the runtime's object; None where this process has it, so that ``runtime_object`` is
    free.
    """
    return None if isa in _objects else Job(runtime_ir(isa), vectorize=False, machine=_machine(isa))


def keep_runtime(isa: str, created: bytes) -> bytes:
    """Stores ``created``, the result of ``runtime_job(isa)``, as the runtime's object and returns it."""
    return _objects.setdefault(isa, created)


def _machine(isa: str) -> Machine:
    described = instruction_set(isa)
    # The runtime computes nothing that a younger processor were faster at, so all images of an instruction set have the
    # same.
    baseline = ",".join(f"+{name}" for name in described.cpus.baseline)
    return Machine(described.triple, described.cpus.oldest, baseline)
