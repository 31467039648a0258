"""Nothing that can be installed is missing unnoticed: one place decides between skipping and failing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.selection import installed

TESTS = Path(__file__).parents[1]


def test_a_missing_thing_is_skipped_or_fails_where_it_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANDBRIDGE_EXPECTED", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"torch is missing; .*pip install torch"):
        installed.missing("torch", "peers")
    with pytest.raises(pytest.fail.Exception, match=r"pip install '\.\[test\]'"):
        installed.missing("pyopencl", "test")
    monkeypatch.setenv("LANDBRIDGE_EXPECTED", "debian peers")
    with pytest.raises(pytest.fail.Exception, match="torch"):
        installed.package("torch_that_is_not_there", "peers")
    with pytest.raises(pytest.fail.Exception, match="install-debian-packages"):
        installed.program("cc-that-is-not-there", "debian")


def test_no_test_skips_for_an_installable_thing_by_itself() -> None:
    pattern = r"importorskip|mark\.skipif|skip\([^)]*(install|apt|pip|needs)[^)]*\)"
    wrong = [
        f"{file.relative_to(TESTS)}: {match[0]}"
        for file in TESTS.rglob("*.py")
        if file.name not in ("installed.py", Path(__file__).name)
        for match in re.finditer(pattern, file.read_text())
    ]
    assert not wrong
