"""What passed already: a second run of the same tree need not repeat it.

``--note-passed FILE``, or the variable, writes the names of the tests that passed; ``--but-those-in FILE`` deselects
these.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

#: Names the file where the command line is fixed. It is for one run, not for those that its tests start.
VARIABLE = "LANDBRIDGE_NOTE_PASSED"


def add_options(parser: pytest.Parser) -> None:
    """``--note-passed`` and ``--but-those-in``."""
    parser.addoption(
        "--note-passed",
        type=Path,
        default=os.environ.pop(VARIABLE, None),
        metavar="FILE",
        help="write the names of the tests that passed",
    )
    parser.addoption("--but-those-in", type=Path, metavar="FILE", help="leave out the tests that FILE names")


def left_out(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    """The items that ``--but-those-in`` names. Raises UsageError where there is no such file."""
    file: Path | None = config.getoption("--but-those-in")
    if file is None:
        return []
    if not file.is_file():
        raise pytest.UsageError(f"--but-those-in {file}: there is no such file; --note-passed writes one")
    names = set(file.read_text().splitlines())
    return [item for item in items if item.nodeid in names]


class Passed:
    """Collects the tests whose three phases passed, and writes them when the run ends."""

    def __init__(self, file: Path) -> None:
        self._file = Path(file)
        self._outcomes: dict[str, set[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Of a worker's tests, too."""
        self._outcomes.setdefault(report.nodeid, set()).add(report.outcome)

    def pytest_sessionfinish(self) -> None:
        """Write one name a line."""
        passed = sorted(name for name, outcomes in self._outcomes.items() if outcomes == {"passed"})
        self._file.write_text("".join(f"{name}\n" for name in passed))
