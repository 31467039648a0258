"""Tests of properties draw more examples with ``--full``, and a share of those that passed before is repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.selection.properties import FEW, MANY

pytest_plugins = ["pytester"]
TESTS = """
from hypothesis import given, settings, strategies as st

drawn = []

@given(st.integers())
def test_whole(n): drawn.append(n)
def test_count():
    with open("drawn", "a") as file: file.write(f"{len(drawn)}\\n")
@settings(max_examples=3)
@given(st.integers())
def test_own(n): pass
def test_plain(): pass
"""


def test_examples_and_shares(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    pytester.makeconftest((Path(__file__).parents[1] / "conftest.py").read_text())
    pytester.makepyfile(test_it=TESTS)
    first = pytester.runpytest_subprocess("-n0", "--note-passed=passed", "-p", "no:cacheprovider")
    first.assert_outcomes(passed=4)
    whole = pytester.runpytest_subprocess("-n0", "--full", "-p", "no:cacheprovider")
    whole.assert_outcomes(passed=4)
    assert Path("drawn").read_text().split() == [str(FEW), str(MANY)]
    parts = [
        pytester.runpytest_subprocess(
            "-n0", "--full", f"--share={part}/2", "--but-those-in=passed", "-p", "no:cacheprovider"
        ).parseoutcomes()
        for part in (0, 1)
    ]
    assert sum(part.get("passed", 0) for part in parts) == 2  # both properties, each in one part
