"""Every path that the pages about the source name exists."""

from __future__ import annotations

import re

import pytest

from tests.docs.test_docs import ROOT

#: Examples in a language name modules of their own.
_EXAMPLE = re.compile(r"^```\w+\n.*?^```$", re.MULTILINE | re.DOTALL)
#: What ends in a slash or in the ending of a source file, but is no part of a link.
_PATH = re.compile(r"(?<![\w./:(-])(?:[\w.-]+/)*(?:[\w-]+/|[\w-]+\.(?:py|toml|md))(?![\w/(])")


def paths(text: str) -> list[str]:
    """Paths of files and, with a slash at the end, of folders that ``text`` names."""
    return [match[0] for match in _PATH.finditer(_EXAMPLE.sub("", text))]


@pytest.mark.parametrize("page", ["architecture", "where-to-put"])
def test_every_path_exists(page: str) -> None:
    named = paths((ROOT / "docs" / f"{page}.md").read_text())
    roots = (ROOT, ROOT / "src", ROOT / "src" / "landbridge")
    missing = [path for path in named if not any((root / path).exists() for root in roots)]
    assert len(named) > 30 and not missing


def test_paths_are_found_in_prose_tables_and_pictures() -> None:
    text = (
        "In `a/b.py` and [c](d.md).\n```\n  e/   f.py\n```\n| `g/h/` |\n```python\nopen('i.py')\n```\nand/or 1/2 a.b.py"
    )
    assert paths(text) == ["a/b.py", "e/", "f.py", "g/h/"]
