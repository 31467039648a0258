"""Processes that end when this one does, for whatever reason."""

from __future__ import annotations

import os
import signal
import subprocess
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

#: A shell that waits for its input to end, which the kernel does when the process that holds the other end is killed;
#: then it ends the others of its group and removes the folder that they worked in.
_WATCH = 'trap "" TERM; read _; kill -TERM 0; rm -rf -- "$1"'


class ProcessGroup:
    """A context in which processes are started with ``process_group=group.number``; none outlives it, or this process.

    A C compiler is two programs, one of which starts the other: killing only the first would leave the second running.
    ``folder`` holds their files and is removed when this process is killed; otherwise the caller removes it.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        command = ["/bin/sh", "-c", _WATCH, "sh", self._folder]
        self._watch = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0
        )
        return self

    @property
    def number(self) -> int:
        """Returns the number of the process group."""
        return self._watch.pid

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self._watch.pid, signal.SIGKILL)
        self._watch.communicate()
