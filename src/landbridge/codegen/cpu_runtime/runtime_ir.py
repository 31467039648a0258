"""The runtime every CPU image carries, as LLVM IR: running records, on one thread or on a pool of them.

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

All state lies in the pool, in memory from the C library; the image has no variables.
"""

from __future__ import annotations

from importlib.resources import files

# Offsets into a pool; what different threads write stands in different cache lines.
_BUSY, _LEFT, _PENDING, _WAITING, _WAKE, _SLEEPERS, _STOP = 0, 64, 128, 132, 192, 196, 200
_JOB, _THREADS, _WORKERS = 256, 320, 328
_HANDLES = 384

_FUTEX_SYSCALL, _FUTEX_WAIT_PRIVATE, _FUTEX_WAKE_PRIVATE = 202, 128, 129
# Cycles of the time-stamp counter, which runs at 2 to 3 GHz: about 20 us.
_SPIN_CYCLES = 50_000
_CHUNKS_PER_THREAD = 4


_NUMBERS = {
    "BUSY": _BUSY,
    "LEFT": _LEFT,
    "PENDING": _PENDING,
    "WAITING": _WAITING,
    "WAKE": _WAKE,
    "SLEEPERS": _SLEEPERS,
    "STOP": _STOP,
    "JOB": _JOB,
    "THREADS": _THREADS,
    "WORKERS": _WORKERS,
    "HANDLES": _HANDLES,
    "HANDLES_ROUNDED": _HANDLES + 63,
    "SYSCALL": _FUTEX_SYSCALL,
    "FUTEX_WAIT": _FUTEX_WAIT_PRIVATE,
    "FUTEX_WAKE": _FUTEX_WAKE_PRIVATE,
    "SPIN": _SPIN_CYCLES,
    "CHUNKS": _CHUNKS_PER_THREAD,
}


def runtime_ir() -> str:
    """The LLVM module of the runtime for x86-64 Linux."""
    names = ("runtime.ll", "packed.ll")
    text = "\n".join(files(__package__).joinpath(name).read_text(encoding="utf-8") for name in names)
    for name, number in _NUMBERS.items():
        text = text.replace(f"[{name}]", str(number))
    return text
