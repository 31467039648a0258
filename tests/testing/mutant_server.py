"""Runs tests in children of a process that has imported all they need but Landbridge, which takes longest.

``python -m tests.testing.mutant_server`` reads jobs as lines of JSON, ``[directory, tests, output file]``, runs pytest
on ``tests`` with ``directory`` first on the path, and answers with its exit status. For ``mutated_runtime``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from importlib import import_module
from typing import NoReturn

_PRELOADED = ("pytest", "numpy", "hypothesis", "ml_dtypes", "onnx", "llvmlite.binding", "xdsl.dialects.linalg")
#: Tests that take longer, ten times what the slowest do, wait for ever and have failed; what they do then to end must
#: not wait for ever either.
_SECONDS, _SECONDS_MORE = 20, 5


def main() -> None:
    """Serve until standard input ends."""
    for name in _PRELOADED:
        import_module(name)
    assert not any(name.partition(".")[0] == "landbridge" for name in sys.modules)
    for line in sys.stdin:
        directory, tests, output = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(directory, tests, output)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(directory: str, tests: list[str], output: str) -> None:
    import pytest

    signal.signal(signal.SIGALRM, _end)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS, _SECONDS_MORE)
    file = os.open(output, os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(file, stream)
    sys.path[:] = [directory, *(path for path in sys.path if path)]
    sys.dont_write_bytecode = True
    os.environ |= {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    # in this process, and whatever is named: here nothing is sampled
    status = int(pytest.main(["-x", "-n0", "--full", "-p", "no:cacheprovider", *tests]))
    sys.stdout.flush()
    os._exit(status)


def _end(number: int, frame: object) -> NoReturn:
    raise TimeoutError(f"not over after {_SECONDS} seconds")


if __name__ == "__main__":
    main()
