"""The machine code of the runtime, to be linked with that of kernels."""

from __future__ import annotations

from functools import cache

from landbridge.codegen.cpu_runtime.runtime_ir import runtime_ir
from landbridge.codegen.llvm.compile import Machine
from landbridge.codegen.llvm.compile_jobs import Job, compile_all

#: The runtime computes nothing that a younger processor were faster at, so all images of an instruction set have the
#: same.
_OLDEST_CPU = {"x86_64": "x86-64", "aarch64": "generic"}


@cache
def runtime_object(isa: str) -> bytes:
    """The relocatable object of the runtime for Linux on ``isa``, ``x86_64`` or ``aarch64``; raises CodegenError."""
    machine = Machine(f"{isa}-unknown-linux-gnu", _OLDEST_CPU[isa], "")
    return compile_all([Job(runtime_ir(isa), vectorize=False)], machine)[0]
