"""The documentation site: it builds without a warning, finds words, has a light and a dark side, and loads nothing."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import landbridge as lb
from tests.plan_chart.browser import BROWSER
from tests.selection.installed import missing

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
    assert found == {"from-tvm.html", "glossary.html"}
    assert len({entry["location"].partition("#")[0] for entry in index["docs"]}) >= 30


def test_links_out_of_the_folder_are_named(site: Path) -> None:
    text = (site / "open-dimensions.html").read_text()
    assert "benchmarks/results/open_dimensions.md" in text and "../benchmarks" not in text


def test_the_header_names_the_version_and_links_the_repository(site: Path) -> None:
    shown = re.search(r'<span class="?md-ellipsis"?>\s*(.*?)\s*</span>', (site / "index.html").read_text(), re.DOTALL)
    assert shown is not None
    assert shown[1] == f"Landbridge {lb.__version__}"


def test_the_repository_is_linked_once_it_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    specified = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "site_hooks.py")
    assert specified is not None and specified.loader is not None
    hooks = importlib.util.module_from_spec(specified)
    specified.loader.exec_module(hooks)
    assert "repo_url" not in hooks.on_config({"site_name": "Landbridge"})
    (tmp_path / "pyproject.toml").write_text('[project]\n[project.urls]\nRepository = "https://forge.example/we/it/"\n')
    monkeypatch.setattr(hooks, "_ROOT", tmp_path)
    found = hooks.on_config({"site_name": "Landbridge"})
    assert (found["site_name"], found["repo_name"]) == (f"Landbridge {lb.__version__}", "we/it")
    assert found["repo_url"] == "https://forge.example/we/it/"


def test_code_is_seen_whole_on_a_screen_of_1300_pixels(site: Path) -> None:
    browser = BROWSER or missing("Chromium", "chromium")
    code = "const cut = [...document.querySelectorAll('pre > code')].filter((e) => e.scrollWidth > e.clientWidth + 1);"
    # a picture in characters: the first block of its page, whose lines must not go on below
    code += "const whole = document.querySelector('pre > code'), line = parseFloat(getComputedStyle(whole).lineHeight);"
    code += "const lines = whole.textContent.trimEnd().split('\\n').length;"
    code += "document.title = JSON.stringify([lines, cut.length + (whole.clientHeight > (lines + 2.5) * line)]);"
    for name in ("open-dimensions", "architecture", "run-without-copies"):
        page = site / f"{name}-measured.html"
        text = (site / f"{name}.html").read_text()
        page.write_text(text.replace("</body>", f"<script>{code}</script></body>"))
        done = subprocess.run(
            [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1300,900",
             f"--user-data-dir={site.parent / 'profile'}", "--virtual-time-budget=4000", "--dump-dom", page.as_uri()],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        shown = re.search(r"<title>\[(\d+), ?(\d+)\]", done.stdout)
        assert shown is not None, done.stderr
        assert int(shown[1]) > 0 and int(shown[2]) == 0, (name, shown[0])
