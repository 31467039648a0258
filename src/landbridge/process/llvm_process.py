"""Processes that compile with LLVM; one may be started before its work is known.

LLVM takes 0.03 s to load and 40 MB of a process. So a command that compiles first starts a process that loads it, while
the command imports what it needs. That process reports what LLVM knows of this host, and then compiles as others do.
"""

from __future__ import annotations

import atexit
import pickle
from contextlib import suppress
from typing import TYPE_CHECKING

from landbridge.process.helper_process import has_interpreter

if TYPE_CHECKING:
    import subprocess

#: Compiles what comes, and ends without what Python does at its end, of which nothing is left to be done, and which the
#: caller would wait for.
_SERVE = "import os; from landbridge.codegen.llvm.compile_jobs import serve; serve(); os._exit(0)"
#: Says what this host is first. Ctrl-C goes to the whole group, and is for its parent from the start.
_TELL = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
_TELL += "from landbridge.targets.llvm_cpu import tell_host; tell_host(); "

#: The process that is not in use yet, and whether it still has to describe this host.
_begun: list[tuple[subprocess.Popen[bytes], bool]] = []


def begin() -> None:
    """Starts a process in advance that can report on this host or compile; does nothing where no process can be
    started.
    """
    if _begun or not has_interpreter():
        return
    with suppress(OSError):  # the later caller reports that no process can be started
        _begun.append((_started(_TELL + _SERVE), True))
        atexit.register(_end)


def is_begun() -> bool:
    """Returns whether a process was started in advance and not taken yet."""
    return bool(_begun)


def answer() -> object:
    """Returns what that process reports of this host; None where there is no process, or where LLVM does not load."""
    if not _begun or not _begun[0][1]:
        return None
    process, _ = _begun[0]
    assert process.stdout is not None
    try:
        host = pickle.load(process.stdout)
    except (OSError, EOFError, pickle.UnpicklingError):
        host = None
    if host is None:
        _end()
    else:
        _begun[0] = process, False
    return host


def take() -> subprocess.Popen[bytes]:
    """Returns a process that the caller owns and ends: the one started in advance, else a new one; raises OSError."""
    answer()
    return _begun.pop()[0] if _begun else _started(_SERVE)


def _started(code: str) -> subprocess.Popen[bytes]:
    from landbridge.process.start_helper import start_helper  # many processes only ask whether one was started

    return start_helper(code)


def _end() -> None:
    """Ends the process started in advance, which has no work."""
    while _begun:
        process, _ = _begun.pop()
        process.kill()
        process.communicate()
