"""The memory kinds of targets that run on the host's own CPUs."""

from __future__ import annotations

from dataclasses import replace

from landbridge.executable.abi import STORAGE_ALIGNMENT
from landbridge.memory_kind import GLOBAL_SCOPE, PINNED_SCOPE, MemoryKind
from landbridge.targets.kind import Options

_DL_CPU = 1  # kDLCPU of dlpack.h


def host_memory(options: Options) -> tuple[MemoryKind, ...]:
    """Returns host memory: everything the process can address, used in place for any allocator, and what stays in
    memory.

    It is not declared as pinned, as the machine may refuse to lock it.
    """
    ordinary = MemoryKind(
        scope=GLOBAL_SCOPE,
        host_access="read_write",
        coherent=True,
        alignment=STORAGE_ALIGNMENT,
        importable=True,
        dlpack_device=(_DL_CPU, 0),
    )
    return ordinary, replace(ordinary, scope=PINNED_SCOPE, resident=True, importable=False)
