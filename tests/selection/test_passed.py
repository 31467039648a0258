"""``--note-passed`` writes what passed, ``--but-those-in`` leaves that out and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.selection.passed import VARIABLE

pytest_plugins = ["pytester"]
TESTS = """
import os
import pytest

def test_right(): assert "LANDBRIDGE_NOTE_PASSED" not in os.environ
def test_wrong(): assert 0
def test_skipped(): pytest.skip("for want of a tool")
@pytest.fixture
def broken():
    yield
    assert 0
def test_broken_at_its_end(broken): pass
@pytest.mark.parametrize("x", ["a b", "c[d]"])
def test_each(x): pass
"""


@pytest.fixture
def tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder of tests that are selected as ours are."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    pytester.makeconftest((Path(__file__).parents[1] / "conftest.py").read_text())
    pytester.makepyfile(test_it=TESTS)
    return pytester


@pytest.mark.parametrize("workers", ["-n0", "-n1"])
def test_what_passed_is_not_repeated(tests: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str) -> None:
    if workers == "-n1":
        monkeypatch.setenv(VARIABLE, str(tests.path / "passed"))
    noted = ["--note-passed=passed"] if workers == "-n0" else []
    first = tests.runpytest_subprocess(workers, *noted, "-p", "no:cacheprovider")
    monkeypatch.delenv(VARIABLE, raising=False)
    first.assert_outcomes(passed=4, failed=1, skipped=1, errors=1)
    assert Path("passed").read_text().splitlines() == [
        f"test_it.py::{name}" for name in ("test_each[a b]", "test_each[c[d]]", "test_right")
    ]
    second = tests.runpytest_subprocess(workers, "--but-those-in=passed", "-p", "no:cacheprovider")
    second.assert_outcomes(passed=1, failed=1, skipped=1, errors=1)


def test_a_file_that_is_not_there_is_reported(tests: pytest.Pytester) -> None:
    reported = tests.runpytest_subprocess("-n0", "--but-those-in=nothing")
    reported.stderr.fnmatch_lines(["*nothing: there is no such file*"])
