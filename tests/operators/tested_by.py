"""``tested_by.txt``: for every implementation of an operator a test that fails when it computes something else.

A new operator needs a line, ``KEY = TEST``: ``example.Op@1 kernel = tests/ops/test_op.py::test_op[float32]``. Its test
compares results with numpy, onnxruntime or those that ONNX's suite stores.

``python -m tests.operators.tested_by TESTS`` looks for such tests among TESTS, files or folders as for pytest. It adds
lines for keys that have none, removes those of operators that are gone, and prints the keys that are left.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

FILE = Path(__file__).with_suffix(".txt")
_ROOT = Path(__file__).parents[2]
#: How many tests are tried for each implementation: those that use the fewest others, and take the least time.
_TRIED = 6


def read() -> dict[str, str]:
    """The test of each key."""
    return dict(read_pairs(FILE))


def read_pairs(file: Path) -> list[tuple[str, str]]:
    """The lines of a file, as keys and tests."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [(key, test) for key, _, test in (line.partition(" = ") for line in lines)]


def write(tests: Iterable[tuple[str, str]], file: Path = FILE) -> None:
    """Replaces the file, sorted by key."""
    file.write_text("".join(f"{key} = {test}\n" for key, test in sorted(tests)), encoding="utf-8")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest with the plugin that watches and breaks operators."""
    options = ("-n0", "-q", "-p", "no:cacheprovider", "-p", "tests.operators.broken_plugin", "--full")
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)


def outcomes(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """What each test, given with a key, says of the implementation when it is broken: ``noticed``, or what else."""
    with tempfile.TemporaryDirectory() as folder:
        file, report = Path(folder) / "pairs.txt", Path(folder) / "report.json"
        listed = list(pairs)
        write(listed, file)
        functions = sorted({test.partition("[")[0] for _, test in listed})  # pytest ends at an unknown parameter
        ended = run(f"--break-operators={file}", f"--broken-report={report}", *functions)
        if not report.exists():
            raise RuntimeError(f"pytest ended without a report:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
        found = {(key, test): outcome for key, test, outcome in json.loads(report.read_text())}
    return {pair: found.get(pair, "no such test, or it did not run") for pair in listed}


def candidates(uses: Mapping[str, tuple[float, list[str]]], wanted: set[str]) -> dict[str, list[str]]:
    """The tests to try for each key: ``uses`` has the seconds and the keys of each test."""
    of_key: dict[str, list[tuple[int, float, str]]] = defaultdict(list)
    for test, (seconds, used) in uses.items():
        for key in wanted.intersection(used):
            of_key[key].append((len(used), seconds, test))
    return {key: [test for *_, test in sorted(found)[:_TRIED]] for key, found in of_key.items()}


def main(*where: str) -> None:
    """Adds tests from ``where`` for keys without one."""
    from tests.operators.broken import keys

    known = {key: test for key, test in read().items() if key in keys()} if FILE.exists() else {}
    wanted = set(keys()) - set(known)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "uses.json"
        run(f"--note-operators={file}", *where)
        tried = candidates(json.loads(file.read_text()), wanted)
    found = outcomes((key, test) for key, tests in tried.items() for test in tests)
    for key, tests in tried.items():
        noticing = [test for test in tests if found[key, test] == "noticed"]
        if noticing:
            known[key] = noticing[0]
    write(known.items())
    for key in sorted(wanted - known.keys()):
        print(key, "|", *(f"{test}: {found[key, test]};" for test in tried.get(key, [])))


if __name__ == "__main__":
    main(*sys.argv[1:])
