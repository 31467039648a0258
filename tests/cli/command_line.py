"""Command lines run in this process, and what became of them."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from landbridge.cli.app import app


@dataclass(frozen=True)
class Ended:
    """What a command printed on standard output, on standard error and on both in order; its exit code or its fault."""

    exit_code: int
    stdout: str
    stderr: str
    output: str
    exception: Exception | None


class _Both(io.StringIO):
    """Text that another one gets, too."""

    def __init__(self, other: io.StringIO) -> None:
        super().__init__()
        self._other = other

    def write(self, text: str) -> int:
        self._other.write(text)
        return super().write(text)


def invoke(words: Sequence[str], env: Mapping[str, str] | None = None) -> Ended:
    """``landbridge *words``, with ``env`` added to the environment. A fault is not raised, and has exit code 1."""
    output = io.StringIO()
    stdout, stderr = _Both(output), _Both(output)
    exception = None
    with redirect_stdout(stdout), redirect_stderr(stderr), patch.dict(os.environ, env or {}):
        try:
            code = app(words)
        except Exception as fault:
            exception, code = fault, 1
    return Ended(code, stdout.getvalue(), stderr.getvalue(), output.getvalue(), exception)
