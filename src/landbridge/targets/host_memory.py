"""The memory of targets that run on the host's own CPUs."""

from __future__ import annotations

from landbridge.executable.abi import STORAGE_ALIGNMENT
from landbridge.memory_kind import MemoryKind
from landbridge.targets.kind import Options

_DL_CPU = 1  # kDLCPU of dlpack.h


def host_memory(options: Options) -> tuple[MemoryKind, ...]:
    """Host memory: everything the process can address, used in place whoever allocated it."""
    return (
        MemoryKind(
            scope="global",
            host_access="read_write",
            coherent=True,
            alignment=STORAGE_ALIGNMENT,
            importable=True,
            dlpack_device=(_DL_CPU, 0),
        ),
    )
