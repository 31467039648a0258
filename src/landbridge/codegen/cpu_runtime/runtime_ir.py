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


#: Of each instruction set: the number of Linux's futex call; SPIN, about 20 us in units of ``landbridge.spent``; what
#: the register of floats is set to, and UNSET, which it never is.
_OF_ISA = {
    "x86_64": {
        "SYSCALL": 202,
        # Cycles of the time-stamp counter, which runs at 2 to 3 GHz.
        "SPIN": 50_000,
        # Of MXCSR: no flags, no traps, rounding to nearest; FLUSH with denormals-are-zero (bit 6), flush-to-zero (15).
        "KEEP": 0x1F80,
        "FLUSH": 0x9FC0,
        "UNSET": 0,
    },
    "aarch64": {
        "SYSCALL": 98,
        "SPIN": 1_000,
        # Of FPCR: rounding to nearest, no traps; FLUSH with FZ (bit 24), for inputs and results of f32 and f64.
        "KEEP": 0,
        "FLUSH": 1 << 24,
        "UNSET": -1,
    },
}


def runtime_ir(isa: str) -> str:
    """Returns the LLVM module of the runtime for Linux on ``isa``, ``x86_64`` or ``aarch64``."""
    names = ("runtime.ll", "packed.ll", f"float_control_{isa}.ll", f"spin_{isa}.ll")
    text = "\n".join(files(__package__).joinpath(name).read_text(encoding="utf-8") for name in names)
    for name, number in {**_VALUES, **_OF_ISA[isa]}.items():
        text = text.replace(f"[{name}]", str(number))
    return text
