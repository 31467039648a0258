"""A process that is killed in a compile leaves no C compiler at work, and no files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.selection.installed import program

#: A compiler that never comes to an end: as gcc does, it starts another program for the work, which says its number.
COMPILER = """#!/bin/sh
case " $* " in *" -c "*) sh -c 'echo $$ >> "{pids}"; touch "$TMPDIR/half.s"; exec sleep 100'; exit 1;; esac
exec {gcc} "$@"
"""
COMPILE = """
import sys, landbridge as lb
from tests.whole_models.small_models import projection
lb.compile(projection(2, 4, 4), "c -compiler=" + sys.argv[1])
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left(how: signal.Signals, tmp_path: Path) -> None:
    compiler, pids, scratch = tmp_path / "cc", tmp_path / "pids", tmp_path / "scratch"
    compiler.write_text(COMPILER.format(pids=pids, gcc=program("gcc", "debian")))
    compiler.chmod(0o755)
    scratch.mkdir()
    child = subprocess.Popen(
        [sys.executable, "-c", COMPILE, str(compiler)],
        env={**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stderr=subprocess.DEVNULL,
    )
    _wait(lambda: pids.exists() and pids.read_text().endswith("\n") and list(scratch.rglob("half.s")))
    child.send_signal(how)
    assert child.wait(30) in (-how, 1, 130)
    started = [int(line) for line in pids.read_text().split()]
    _wait(lambda: not any(map(_runs, started)) and not list(scratch.iterdir()))


def _runs(pid: int) -> bool:
    """Whether process ``pid`` works still; one that ended and that nobody waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _wait(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "not within a minute"
        time.sleep(0.02)
