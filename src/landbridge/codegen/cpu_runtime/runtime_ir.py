"""The runtime that every CPU image contains, as LLVM IR: it runs records, on one thread or on a pool of threads.

The interface is ``landbridge.executable.abi``. How threads share one call of ``tasks`` tasks:

- The caller cuts the tasks into chunks, writes down the job (kernel, arguments, tasks, chunk size), sets
  ``pending`` to the number of chunks, and then publishes that number in ``left``.
- Every thread, the caller too, claims a chunk by lowering ``left`` with compare-and-exchange and reads the job
  *after* the claim: a claim succeeds only while chunks are left, and the caller cannot write another job before
  each claimed chunk is subtracted from ``pending``; so a late thread can never see half of a job.
- A thread that finds nothing left subtracts what it did from ``pending``; the caller goes on at 0.
- Whoever waits spins for about 20 us and then sleeps on a futex. A sleeper first counts itself in ``sleepers``
  (or sets ``waiting``) and then looks again, the other side first changes what is looked at and then looks for
  sleepers, all sequentially consistent: one of the two sees the other.

What kernels of a call do with denormal floats is the kind of its record. A thread sets its register of floats before
the first kernel and where the next one wants another setting; the caller's is restored when the run ends, flags and
all. Workers have no other use for theirs. All of the register is set, so that kernels round to nearest and never
trap, whatever the caller has set.

Each thread has a workspace, which kernels get for what is too large for a stack: the caller brings its own, and those
of workers are part of the pool, where a worker takes the next one as it starts.

All state lies in the pool, in memory from the C library; the image has no variables.
"""

from __future__ import annotations

from importlib.resources import files

from landbridge.instruction_sets.registry import instruction_set

#: What stands for the words in brackets.
_VALUES = {
    # Offsets into a pool; data that different threads write are in different cache lines.
    "BUSY": 0,
    "LEFT": 64,
    "PENDING": 128,
    "WAITING": 132,
    "WAKE": 192,
    "SLEEPERS": 196,
    "STOP": 200,
    "JOB": 256,
    "THREADS": 320,
    "WORKERS": 328,
    "STARTED": 336,
    "WORKSPACE_BYTES": 344,
    "WORKSPACES": 352,
    "HANDLES": 384,
    "HANDLES_ROUNDED": 384 + 63,
    # Both futex operations are private to one process.
    "FUTEX_WAIT": 128,
    "FUTEX_WAKE": 129,
    # For each thread.
    "CHUNKS": 4,
}


#: By the bits of an address: C's type ``long``, and how a word of 64 bits becomes one.
_LONG = {64: ("i64", "bitcast"), 32: ("i32", "trunc")}


#: By the bits of an address: the bytes of a DLTensor before each field that the checker of packed functions reads.
_TENSOR = {
    64: {"DEVICE_AT": 8, "RANK_AT": 16, "TYPE_AT": 20, "SHAPE_AT": 24, "STRIDES_AT": 32, "OFFSET_AT": 40},
    32: {"DEVICE_AT": 4, "RANK_AT": 12, "TYPE_AT": 16, "SHAPE_AT": 20, "STRIDES_AT": 24, "OFFSET_AT": 32},
}


def runtime_ir(isa: str) -> str:
    """Returns the LLVM module of the runtime for Linux on the instruction set ``isa``; without packed functions where
    no libraries are written for it.
    """
    described = instruction_set(isa)
    source = described.runtime
    common = ("runtime.ll", "packed.ll") if described.code is not None else ("runtime.ll",)
    texts = (files(__package__).joinpath(name).read_text(encoding="utf-8") for name in common)
    text = "\n".join((*texts, source.text()))
    long, to_long = _LONG[described.elf.bits]
    tensor = _TENSOR[described.elf.bits]
    for name, value in {**_VALUES, **source.numbers, **tensor, "LONG": long, "TO_LONG": to_long}.items():
        text = text.replace(f"[{name}]", str(value))
    return text
