"""The target kind ``wasm``: WebAssembly 2.0 with vectors of 128 bits, in browsers and in engines such as Wasmtime."""

from __future__ import annotations

from landbridge.memory_kind import GLOBAL_SCOPE, MemoryKind
from landbridge.targets.kind import Option, Options, TargetKind

#: Bytes of an address space of 32 bits.
ADDRESS_SPACE_BYTES = 1 << 32
#: The multiple at which allocations begin: a line of the caches of most processors.
ALIGNMENT = 64


def linear_memory(options: Options) -> tuple[MemoryKind, ...]:
    """Returns the one memory of a WebAssembly instance, which its host reads and writes in place."""
    return (
        MemoryKind(
            scope=GLOBAL_SCOPE,
            host_access="read_write",
            coherent=True,
            alignment=ALIGNMENT,
            max_bytes=ADDRESS_SPACE_BYTES,
            capacity=ADDRESS_SPACE_BYTES,
        ),
    )


WASM = TargetKind(
    name="wasm",
    doc="WebAssembly 2.0, in browsers and in engines such as Wasmtime",
    options=(
        Option(
            "vector-bits",
            "int",
            "Bits of a vector; below 128 no instruction of vectors is used.",
            128,
            minimum=32,
            power_of_two=True,
        ),
        Option("vector-registers", "int", "Vector registers of the processors that run it.", 16, minimum=4),
        Option("l1-bytes", "int", "Data cache nearest to a core of these processors, in bytes.", 32 << 10, minimum=1),
        Option("l2-bytes", "int", "Second cache of a core of these processors, in bytes.", 256 << 10, minimum=1),
        Option("num-cores", "int", "Cores that kernels are split for.", 1, minimum=1),
        Option("denormals", "str", "Denormal floats: computed with.", "keep", choices=("keep",)),
    ),
    device_types=("wasm",),
    default_for=("wasm",),
    formats=("wasm",),
    memory=linear_memory,
)
