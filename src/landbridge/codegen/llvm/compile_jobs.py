"""Compiles many LLVM modules in parallel.

llvmlite lets one thread of a process into LLVM at a time, so other cores are reached through helper processes:
each reads modules from its standard input and writes objects to its standard output. A helper that LLVM ends
(its assertions abort) costs an error and not the caller's process.

Where much is expected helpers compile everything, as what LLVM takes of memory (40 MB of its code, for one) is not the
caller's then, which has the weights of a model. LLVM ends its process when memory ends:
where a limit is set to the process's memory, helpers therefore compile everything too; elsewhere memory does not end
before the kernel ends processes of its own choice. So they do for other instruction sets than this process's.
"""

from __future__ import annotations

import pickle
import platform
import resource
import signal
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing
from heapq import heappop, heappush
from typing import IO

from landbridge.codegen.llvm.machine import Machine
from landbridge.errors import CodegenError, OutOfMemoryError
from landbridge.ir.limits import check_time
from landbridge.process import llvm_process, start_helper  # noqa: F401 - before the application changes sys.path
from landbridge.process.background_threads import start
from landbridge.process.helper_process import has_interpreter
from landbridge.process.locks import new_lock
from landbridge.process.usable_cores import usable_cores
from landbridge.records import record
from landbridge.targets.llvm_cpu import architecture

#: Characters of IR below which a helper, which takes 0.1 s to start, is not worth it: about 0.2 s of LLVM.
_WORTH_A_HELPER = 150_000
#: Characters of a kernel at least, of those that take time: most have 10,000 to 100,000.
_SMALL = 10_000
_MOST_PROCESSES = 8

_MEMORY_LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_DATA)


@record(frozen=True)
class Job:
    """One LLVM module to compile; see ``compile_ir`` for ``vectorize``. ``machine`` None means that of the other
    jobs.
    """

    text: str
    vectorize: bool
    machine: Machine | None = None


#: The seconds between checks of the time limit while helpers work.
_LOOK_AT_TIME = 0.2


class Jobs:
    """LLVM modules for one machine; helper processes compile the first ones while others are still generated.

    ``processes``: the most cores to use (None: as many of this machine as there is work for). ``expected``: the
    approximate number of modules, so that helpers are started in time. The owner must call ``close``.
    """

    def __init__(self, machine: Machine, processes: int | None = None, expected: int = 0) -> None:
        self._machine = machine
        self._is_reported = processes is not None
        self._expected = expected
        self._most = min(usable_cores(), _MOST_PROCESSES) if processes is None else processes
        is_much = expected * _SMALL >= _WORTH_A_HELPER
        is_separate = is_much or llvm_process.is_begun() or _memory_is_limited() or _is_foreign(machine)
        self._separate = is_separate and has_interpreter()
        # The thread that generates modules uses one core; all others compile when it is done.
        self._work = _Work(self._most if self._is_reported else max(1, usable_cores() - 1))
        self._threads: list[threading.Thread] = []

    def add(self, job: Job) -> int:
        """Adds ``job`` and returns its number; raises CodegenError where no helper can be started for it."""
        work = self._work
        size = max(work.size + len(job.text), self._expected * _SMALL)
        wanted = self._most if self._is_reported else min(self._most, 1 + size // _WORTH_A_HELPER)
        helpers = min(wanted, max(len(work.results) + 1, self._expected)) - (0 if self._separate else 1)
        while len(self._threads) < min(helpers, self._most) and has_interpreter():
            self._start_helper()
        return work.add(job)

    def _start_helper(self) -> None:
        """Starts a helper and the thread that feeds it; if the system has no more threads, works with fewer."""
        helper = _helper(self._machine)
        thread = threading.Thread(target=helper.work, args=(self._work,))
        try:
            start(thread)
        except OutOfMemoryError:
            helper.end()
            if not self._threads and self._separate:
                raise
            self._most = len(self._threads)
        else:
            self._threads.append(thread)

    def objects(self, indices: Sequence[int]) -> list[bytes]:
        """Returns the objects of the jobs ``indices``, in this order; no job may be added afterwards.

        Raises CodegenError for the first of them that LLVM rejects, BudgetError where the compile has taken too long.
        """
        work = self._work
        work.end()
        while not self._separate and (taken := work.take()) is not None:
            check_time("LLVM")
            work.done(taken[0], _compile(taken[1], self._machine))
        for thread in self._threads:
            while thread.is_alive():
                thread.join(_LOOK_AT_TIME)
                check_time("LLVM")
        objects = []
        for result in [work.results[i] for i in indices]:
            if isinstance(result, CodegenError):
                raise result
            if result is None:
                raise OutOfMemoryError(
                    "memory ended while LLVM compiled; end other programs, or raise the limit of this one (ulimit -v)"
                )
            objects.append(result)
        return objects

    def close(self) -> None:
        """Ends the helpers when their present jobs are done."""
        self._work.drop()
        for thread in self._threads:
            thread.join()


def compile_all(jobs: Iterable[Job], machine: Machine, processes: int | None = None) -> list[bytes]:
    """Returns the objects of ``jobs``, in order, compiled on at most ``processes`` (None: all) cores of this machine.

    Raises as ``Jobs`` does.
    """
    with closing(Jobs(machine, processes)) as created:
        return created.objects([created.add(job) for job in jobs])


class _Work:
    """A queue of jobs, the longest first, as the last one to finish decides the total time.

    While others may come, at most ``at_once`` run at a time.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once, self._begun = at_once, 0
        #: None: memory ended in this process while a helper compiled it.
        self.results: list[bytes | CodegenError | None] = []
        #: Characters of all jobs.
        self.size = 0
        self._waiting: list[tuple[int, int, Job]] = []
        self._changed = threading.Condition(new_lock())
        self._is_whole = False

    def add(self, job: Job) -> int:
        with self._changed:
            number = len(self.results)
            heappush(self._waiting, (-len(job.text), number, job))
            self.results.append(b"")
            self.size += len(job.text)
            self._changed.notify()
            return number

    def end(self) -> None:
        """Notes that no more jobs come."""
        with self._changed:
            self._is_whole = True
            self._changed.notify_all()

    def drop(self) -> None:
        """Drops the waiting jobs."""
        with self._changed:
            self._waiting.clear()
            self.end()

    def take(self) -> tuple[int, Job] | None:
        """Takes a job, which the caller reports as ``done``, with its number; returns None when no more jobs come."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_whole or (self._waiting and self._begun < self._at_once))
            if not self._waiting:
                return None
            self._begun += 1
            return heappop(self._waiting)[1:]

    def done(self, number: int, result: bytes | CodegenError | None) -> None:
        """Records ``result`` of job ``number``."""
        with self._changed:
            self.results[number] = result
            self._begun -= 1
            self._changed.notify()


def _memory_is_limited() -> bool:
    """Returns whether an allocation of this process may fail for a limit set to it (``ulimit -v``, ``ulimit -d``)."""
    return any(resource.getrlimit(subject)[0] != resource.RLIM_INFINITY for subject in _MEMORY_LIMITS)


def _is_foreign(machine: Machine) -> bool:
    """Returns whether code is for another instruction set than this process runs; that part of LLVM is less tested."""
    return architecture(machine.triple) != architecture(platform.machine().lower())


def _compile(job: Job, machine: Machine) -> bytes | CodegenError:
    from landbridge.codegen.llvm.compile import compile_ir  # loading LLVM takes 40 MB of a process

    try:
        return compile_ir(job.text, job.machine or machine, vectorize=job.vectorize)
    except CodegenError as error:
        return error


class _Helper:
    """A process that compiles; it ends when its standard input does."""

    def __init__(self, machine: Machine) -> None:
        self._process, self._machine = llvm_process.take(), machine

    def end(self) -> None:
        """Ends the process, which has no work."""
        self._process.kill()
        self._process.communicate()

    def work(self, work: _Work) -> None:
        """Compiles jobs until no more come, then ends the process."""
        with self._process as process:
            assert process.stdin is not None and process.stdout is not None
            while (taken := work.take()) is not None:
                number, job = taken
                try:
                    _send(process.stdin, (job, self._machine))
                    work.done(number, pickle.load(process.stdout))
                except (OSError, EOFError, pickle.UnpicklingError):
                    error = CodegenError(
                        f"LLVM ended its process with status {process.wait()} over a module of {len(job.text)} "
                        "characters: its memory ended (ulimit -v, free memory), or it has no rule for the module; give "
                        "it more memory, or compile for another CPU (-mcpu, -mattr) and report it"
                    )
                    work.done(number, error)
                    work.drop()  # there is an error to raise, and perhaps no thread left to take a job
                    return
                except MemoryError:
                    work.done(number, None)
                    process.kill()
                    work.drop()  # there is an error to raise, and perhaps no thread left to take a job
                    return


def _helper(machine: Machine) -> _Helper:
    try:
        return _Helper(machine)
    except OSError as error:
        raise CodegenError(f"no process for LLVM could be started: {error}; free memory or processes") from error


def _send(stream: IO[bytes], value: object) -> None:
    pickle.dump(value, stream)
    stream.flush()


def serve() -> None:
    """Compiles modules from standard input until it ends, in the helper process."""
    # Ctrl-C goes to the whole process group: the parent decides, and closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            job, machine = pickle.load(source)
        except EOFError:
            return
        _send(sink, _compile(job, machine))
