"""The machine code of the runtime, to be linked with that of kernels."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from landbridge.codegen.cpu_runtime.runtime_ir import runtime_ir
from landbridge.codegen.llvm.compile import Machine
from landbridge.codegen.llvm.compile_jobs import Job, compile_all

#: The runtime computes nothing that a younger processor were faster at, so all images of an instruction set have the
#: same.
_OLDEST_CPU = {"x86_64": "x86-64", "aarch64": "generic"}


#: By instruction set, once they are made: no two compiles of a process make the same.
_objects: dict[str, bytes] = {}


def runtime_object(isa: str) -> bytes:
    """The relocatable object of the runtime for Linux on ``isa``, ``x86_64`` or ``aarch64``; raises CodegenError."""
    (made,) = with_runtime([], isa, _machine(isa))
    return made


def with_runtime(jobs: Iterable[Job], isa: str, machine: Machine) -> list[bytes]:
    """The runtime's object for ``isa``, then those of ``jobs`` for ``machine``, made at the same time.

    Raises CodegenError as ``compile_all`` does.
    """
    if isa in _objects:
        return [_objects[isa], *compile_all(jobs, machine)]
    runtime = Job(runtime_ir(isa), vectorize=False, machine=_machine(isa))
    objects = compile_all(chain([runtime], jobs), machine)
    _objects[isa] = objects[0]
    return objects


def _machine(isa: str) -> Machine:
    return Machine(f"{isa}-unknown-linux-gnu", _OLDEST_CPU[isa], "")
