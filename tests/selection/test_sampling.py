"""A sample of each family runs by default, the parts of ``--share`` are together what ``--full`` runs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
TESTS = """
import pytest

def test_plain(): pass
@pytest.mark.full
def test_long(): pass
@pytest.mark.sample(3)
@pytest.mark.parametrize("x", range(20))
def test_family(x): pass
@pytest.mark.sample(2, shared=False)
@pytest.mark.parametrize("x", range(5))
def test_undivided(x): pass
@pytest.mark.sample(2, rarer=2)
@pytest.mark.parametrize("x", range(40))
def test_rare(x): pass
"""


@pytest.fixture
def tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder of tests that are selected as ours are."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    pytester.makeconftest((Path(__file__).parents[1] / "conftest.py").read_text())
    pytester.makepyfile(test_it=TESTS)
    return pytester


def ran(tests: pytest.Pytester, *options: str) -> set[str]:
    """The names of those that ran, and passed."""
    result = tests.runpytest_subprocess("-v", "-n0", "-p", "no:cacheprovider", *options)
    names = {line.split()[0].partition("::")[2] for line in result.outlines if "PASSED" in line}
    result.assert_outcomes(passed=len(names), deselected=67 - len(names))
    return names


@pytest.mark.full
def test_parts_are_together_all_and_share_a_sample_and_long_tests(tests: pytest.Pytester) -> None:
    undivided = {f"test_undivided[{x}]" for x in range(5)}
    rare = {f"test_rare[{x}]" for x in range(40)}
    whole = {"test_plain", "test_long", *(f"test_family[{x}]" for x in range(20)), *undivided, *rare}
    sample = ran(tests)
    assert (
        len(sample) == 8 and len(sample & rare) == 2 and len(sample & undivided) == 2 and sample < whole - {"test_long"}
    )
    assert ran(tests, "--full") == whole
    parts = [ran(tests, "--full", f"--share={part}/3") for part in range(6)]
    assert set.union(*(part - rare for part in parts[:3])) == whole - rare and set.union(*parts) == whole
    assert all(a & b == sample | {"test_long"} | undivided for a in parts[:3] for b in parts[:3] if a is not b)
    assert all(parts[part] - rare == parts[part + 3] - rare for part in range(3))
    assert all(a & b & rare == sample & rare for a in parts for b in parts if a is not b)


@pytest.mark.full
def test_a_share_of_nothing_is_refused(tests: pytest.Pytester) -> None:
    for text in ("2", "1/0", "-1/2", "a/b"):
        result = tests.runpytest_subprocess("-n0", f"--share={text}")
        result.stderr.fnmatch_lines([f"*'{text}' is no K/N; legal: 0/2, 1/2 and the like"])
