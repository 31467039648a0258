"""Starts helper processes that run Python code.

The module subprocess takes 5 ms to import with what it imports, and a process that finds its program in the cache
starts no helper. So callers import this module where they start one; those whose application may change ``sys.path``
before that import it with themselves, so that ``subprocess`` is the standard library's.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from landbridge.process.helper_process import environment, python_command


def start_helper(code: str, *, is_silent: bool = False) -> subprocess.Popen[bytes]:
    """Starts a Python process that runs ``code``, with pipes to its standard input and output; raises OSError.

    ``is_silent``: what it writes to its standard error is dropped.
    """
    pipe, errors = subprocess.PIPE, subprocess.DEVNULL if is_silent else None
    return subprocess.Popen(python_command(code), stdin=pipe, stdout=pipe, stderr=errors, env=environment())


def run_helper(code: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Returns the output of a Python process that ran ``code`` with ``arguments``; raises OSError."""
    command = python_command(code, arguments)
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
