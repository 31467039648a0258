"""The documentation site: it builds without a warning, finds words, has a light and a dark side, and loads nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Of the pages: what a browser would fetch from elsewhere.
_FETCHED = re.compile(r"<(?:script|img|link rel=\"(?:stylesheet|preload|icon)\")[^>]*(?:src|href)=\"?(https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_there_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for source in (ROOT / "docs").rglob("*.md"):
        page = site / source.relative_to(ROOT / "docs").with_suffix(".html")
        text = page.read_text()
        assert not _FETCHED.search(text), page
        assert 'data-md-color-scheme="default"' in text and 'data-md-color-scheme="slate"' in text
    assert not list(site.rglob("*.py"))


def test_search_finds_words_of_pages(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    found = {entry["location"].partition("#")[0] for entry in index["docs"] if "VirtualMachine" in entry["text"]}
    assert found == {"from-tvm.html"}
    assert len({entry["location"].partition("#")[0] for entry in index["docs"]}) >= 30


def test_links_out_of_the_folder_are_named(site: Path) -> None:
    text = (site / "open-dimensions.html").read_text()
    assert "benchmarks/results/open_dimensions.md" in text and "../benchmarks" not in text
