"""BackgroundCompile: a process of low priority that compiles a model into the cache, while a first program runs.

The process belongs to this one: it ends when this one does, however that ends, because its standard input ends then. It
leaves no files, because an entry of the cache appears whole or not at all. Compiles of one cache folder wait for each
other, so that several processes that want the same model make it once.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import subprocess
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from landbridge.compiler.cache import CacheEntry
from landbridge.errors import FallbackWarning
from landbridge.executable.executable import Executable
from landbridge.process.helper_process import environment, has_interpreter, python_command
from landbridge.process.locks import new_lock
from landbridge.reporting.warning_notes import warn
from landbridge.targets import Target

#: What is compiled: a model, the target, shapes of inputs and open dimensions that are numbers.
Request: TypeAlias = tuple[bytes | Path, Target, Mapping[str, Sequence[int | str]] | None, Mapping[str, int] | None]
_SERVE = "from landbridge.compiler.background_worker import serve; serve()"

#: Those of this process, so that its end and forks find them.
_all: weakref.WeakSet[BackgroundCompile] = weakref.WeakSet()


class BackgroundCompile:
    """The compile of ``model`` for ``target`` with ``shapes``, whose result goes to ``entry``; a PendingProgram.

    ``instead``: what happens where there is no result, for the warning. Raises OSError where no process can be started.
    """

    def __init__(
        self,
        model: bytes | Path,
        target: Target,
        shapes: Mapping[str, Sequence[int | str]] | None,
        dims: Mapping[str, int] | None,
        entry: CacheEntry,
        instead: str = 'the first program stays in use; compile with optimize="full" to see the error',
    ) -> None:
        self._entry, self._instead = entry, instead
        #: Why there is no result; empty where there is one, or may be one later.
        self.failure = ""
        self._name = model.name if isinstance(model, Path) else "a model"
        self._lock = new_lock()
        self._found: Executable | None = None
        self._is_over = False
        #: The process, where it is one of this process: a child after a fork looks for the entry alone.
        self._process: subprocess.Popen[bytes] | None = None
        _all.add(self)
        self._process = _started((model, target, shapes, dims))

    def __del__(self) -> None:
        self.end()  # nobody is left who would take the program

    def take(self) -> Executable | None:
        """Returns the program once it is in the cache; warns once where it will not be."""
        if self._found is not None or self._is_over:
            return self._found
        if self._process is None:  # a child after a fork
            if not self._entry.is_there():
                return None
        elif not _has_ended(self._process):
            return None
        return self._finish()

    def wait(self) -> Executable | None:
        """Returns the program after the process has ended; at once in a child after a fork, which cannot wait."""
        process = self._process
        if process is not None:
            _has_ended(process, patience=0)
        return self.take()

    def decline(self, reason: str) -> None:
        """Warns that the program is not used."""
        with self._lock:
            if not self._is_over:
                self._found, self._is_over, self.failure = None, True, reason
                warn(
                    f"the full program of {self._name}, which was compiled in the background, is not used: {reason}; "
                    f"{self._instead}",
                    FallbackWarning,
                )

    def _finish(self) -> Executable | None:
        """Reads the result of the process, which has ended."""
        with self._lock:
            if self._found is None and not self._is_over:
                process, self._process = self._process, None
                answer = "" if process is None else _answer_of(process)
                self._found = self._entry.read() if not answer else None
                if self._found is None:
                    self.decline(
                        answer or "it is not in the cache: the model has changed, or the folder is full or was cleared"
                    )
            return self._found

    def end(self) -> None:
        """Ends the process, with the processes that it has started."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            _close(process)
            _reap(process)

    def forget_process(self) -> None:
        """Releases, in a child after a fork, the process of the parent, which must not live as long as the child."""
        process, self._process = self._process, None
        if process is not None:
            _close(process)
            process.returncode = 0  # so that nothing waits for it here


def _started(request: Request) -> subprocess.Popen[bytes]:
    model = request[0]
    if not has_interpreter():
        raise OSError("sys.executable is no Python")
    memory = None
    try:
        if isinstance(model, bytes):
            memory = os.memfd_create("model")
            with os.fdopen(os.dup(memory), "wb") as file:
                file.write(model)
        given = memory if isinstance(model, bytes) else model.absolute()
        content = pickle.dumps((given, *request[1:]))
        process = subprocess.Popen(
            python_command(_SERVE),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            pass_fds=[] if memory is None else [memory],
            start_new_session=True,  # Ctrl-C and a closed terminal are for this process, which ends that one
        )
    finally:
        if memory is not None:
            os.close(memory)
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it ended at once, which ``take`` reports
        process.stdin.write(content)
        process.stdin.flush()
    return process


def _has_ended(process: subprocess.Popen[bytes], patience: int = os.WNOHANG) -> bool:
    """Returns whether the process has ended; 0 for ``patience`` waits until it has.

    ``Popen.poll`` and ``wait`` take a lock that an interrupt may leave taken; ``wait`` then hangs.
    """
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | patience) is not None
    except ChildProcessError:  # somebody has waited for all processes of this one
        return True


def _reap(process: subprocess.Popen[bytes]) -> None:
    """Waits for the process, which has ended or been killed, and notes its status."""
    try:
        if process.returncode is None:
            process.returncode = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
    except ChildProcessError:
        process.returncode = 0  # unknown, as for subprocess


def _answer_of(process: subprocess.Popen[bytes]) -> str:
    """Returns why the process that has ended made no program; nothing where it made one."""
    assert process.stdout is not None
    text = process.stdout.read().decode(errors="replace").strip()
    _close(process)
    _reap(process)
    if process.returncode == 0:
        return ""
    return text or f"its process ended with status {process.returncode}"


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


@atexit.register
def _end_all() -> None:
    for each in list(_all):
        each.end()


def _forget_all() -> None:
    for each in list(_all):
        each.forget_process()


os.register_at_fork(after_in_child=_forget_all)
