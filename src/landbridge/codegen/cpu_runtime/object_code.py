"""The machine code of the runtime, to be linked with that of kernels."""

from __future__ import annotations

from functools import cache

from landbridge.codegen.cpu_runtime.runtime_ir import runtime_ir
from landbridge.codegen.llvm.compile import Machine
from landbridge.codegen.llvm.compile_jobs import Job, compile_all

#: The runtime computes nothing that a younger processor were faster at, so images of all targets have the same.
_ANY_X86_64 = Machine("x86_64-unknown-linux-gnu", "x86-64", "")


@cache
def runtime_object() -> bytes:
    """The relocatable object of the runtime for x86-64 Linux; raises CodegenError."""
    return compile_all([Job(runtime_ir(), vectorize=False)], _ANY_X86_64)[0]
