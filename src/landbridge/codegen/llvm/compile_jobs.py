"""Compiling many LLVM modules at once.

llvmlite lets one thread of a process into LLVM at a time, so other cores are reached through helper processes:
each reads modules from its standard input and writes objects to its standard output. A helper that LLVM ends
(its assertions abort) costs an error and not the caller's process.

LLVM ends its process too when memory ends. Where a limit is set to the process's memory, helpers therefore compile
everything; elsewhere memory does not end before the kernel ends processes of its own choice. They compile everything
for other instruction sets than this process's too.
"""

from __future__ import annotations

import pickle
import platform
import resource
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from typing import IO

from landbridge.codegen.llvm.compile import Machine, compile_ir
from landbridge.errors import CodegenError
from landbridge.helper_process import environment, has_interpreter, python_command
from landbridge.ir.limits import check_time
from landbridge.light_dataclass import dataclass
from landbridge.targets.llvm_cpu import architecture
from landbridge.usable_cores import usable_cores

#: Characters of IR below which a helper, which takes 0.15 s to start, is not worth it: about 0.3 s of LLVM.
_WORTH_A_HELPER = 250_000
_MOST_HELPERS = 7
_SERVE = "from landbridge.codegen.llvm.compile_jobs import serve; serve()"

_MEMORY_LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_DATA)


@dataclass(frozen=True)
class Job:
    """One LLVM module to compile; see ``compile_ir`` for ``vectorize``."""

    text: str
    vectorize: bool


#: Seconds between looks at whether the compile may go on while helpers work.
_LOOK_AT_TIME = 0.2


def compile_all(jobs: Sequence[Job], machine: Machine, processes: int | None = None) -> list[bytes]:
    """The objects of ``jobs``, in order, compiled on at most ``processes`` (None: all) cores of this machine.

    Raises CodegenError for the first job, in order, that LLVM rejects.
    """
    apart = (_memory_is_limited() or _is_foreign(machine)) and has_interpreter()
    if processes is None:
        size = sum(len(job.text) for job in jobs)
        processes = min(usable_cores(), 1 + _MOST_HELPERS, 1 + size // _WORTH_A_HELPER)
    # Longest first: the last one to finish decides.
    waiting = deque(sorted(range(len(jobs)), key=lambda i: -len(jobs[i].text)))
    results: list[bytes | CodegenError] = [b""] * len(jobs)
    count = min(processes, len(jobs)) - (0 if apart else 1)
    try:
        helpers = [_Helper(machine) for _ in range(count)] if has_interpreter() else []
    except OSError as error:
        raise CodegenError(f"no process for LLVM could be started: {error}; free memory or processes") from error
    threads = [threading.Thread(target=helper.work, args=(jobs, waiting, results)) for helper in helpers]
    for thread in threads:
        thread.start()
    try:
        while not apart and (i := _take(waiting)) is not None:
            check_time("LLVM")
            results[i] = _compile(jobs[i], machine)
        for thread in threads:
            while thread.is_alive():
                thread.join(_LOOK_AT_TIME)
                check_time("LLVM")
    finally:
        waiting.clear()
        for thread in threads:
            thread.join()
    objects = []
    for result in results:
        if isinstance(result, CodegenError):
            raise result
        objects.append(result)
    return objects


def _memory_is_limited() -> bool:
    """Whether an allocation of this process may fail for a limit set to it (``ulimit -v``, ``ulimit -d``)."""
    return any(resource.getrlimit(what)[0] != resource.RLIM_INFINITY for what in _MEMORY_LIMITS)


def _is_foreign(machine: Machine) -> bool:
    """Whether code is for another instruction set than this process runs, whose part of LLVM is tried less."""
    return architecture(machine.triple) != architecture(platform.machine().lower())


def _take(waiting: deque[int]) -> int | None:
    try:
        return waiting.popleft()
    except IndexError:
        return None


def _compile(job: Job, machine: Machine) -> bytes | CodegenError:
    try:
        return compile_ir(job.text, machine, vectorize=job.vectorize)
    except CodegenError as error:
        return error


class _Helper:
    """A process that compiles; it ends when its standard input does."""

    def __init__(self, machine: Machine) -> None:
        command, pipe = python_command(_SERVE), subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment())
        self._machine = machine

    def work(self, jobs: Sequence[Job], waiting: deque[int], results: list[bytes | CodegenError]) -> None:
        """Compile jobs until none waits, then end the process."""
        with self._process as process:
            assert process.stdin is not None and process.stdout is not None
            while (i := _take(waiting)) is not None:
                try:
                    _send(process.stdin, (jobs[i], self._machine))
                    results[i] = pickle.load(process.stdout)
                except (OSError, EOFError, pickle.UnpicklingError):
                    results[i] = CodegenError(
                        f"LLVM ended its process with status {process.wait()} over a module of {len(jobs[i].text)} "
                        "characters: its memory ended (ulimit -v, free memory), or it has no rule for the module; "
                        "give it more memory, or compile for another CPU (-mcpu, -mattr) and report it"
                    )
                    waiting.clear()  # there is an error to raise, and perhaps nobody left to take a job
                    return


def _send(stream: IO[bytes], value: object) -> None:
    pickle.dump(value, stream)
    stream.flush()


def serve() -> None:
    """Compile what comes from standard input until it ends: the helper's side."""
    # Ctrl-C goes to the whole group: the parent decides, and closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            job, machine = pickle.load(source)
        except EOFError:
            return
        _send(sink, _compile(job, machine))
