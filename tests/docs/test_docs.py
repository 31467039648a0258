"""The Python in README and docs runs as it stands, and the output shown after a block is what it prints."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from wheel_models import CLASSIFY, DETECT, PP_OCR, wheel_model

from tests.devices.present import first_instance
from tests.docs.boards.stand_ins import FIRST_RUN, on_a_board
from tests.selection.installed import package

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: The devices without which a page's examples cannot run.
NEEDS = {"opencl-and-vulkan": ("opencl", "vulkan"), "several-devices": ("opencl",)}
#: The packages that a page is about.
PEERS = {"from-pytorch": "torch", "on-a-cluster": "ray"}
_BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:)(?P<file>[^)#]+)")
_MARK = "----- end of block -----"


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(match["language"], match["text"]) for match in _BLOCK.finditer(page.read_text())]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(kind == "python" for kind, _ in blocks(page))], ids=lambda page: page.stem
)
def test_python_of_a_page_runs_and_prints_what_is_shown(page, tmp_path):
    for name in NEEDS.get(page.stem, ()):
        first_instance(name)
    if page.stem in PEERS:
        package(PEERS[page.stem], "peers")
    shutil.copy(wheel_model(PP_OCR, DETECT), tmp_path / "det.onnx")
    shutil.copy(wheel_model(PP_OCR, CLASSIFY), tmp_path / "cls.onnx")
    found = blocks(page)
    program = "".join(f"{text}\nprint({_MARK!r})\n" for kind, text in found if kind == "python")
    if page.parent.name == "boards":
        program = on_a_board(page.stem, program, tmp_path)
    (tmp_path / "page.py").write_text(program)
    child = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert child.returncode == 0, child.stderr
    printed = iter(child.stdout.split(f"{_MARK}\n"))
    for number, (kind, _) in enumerate(found):
        if kind != "python":
            continue
        output = next(printed)
        following = found[number + 1] if number + 1 < len(found) else ("", "")
        if following[0] in ("mlir", "text"):
            assert output.strip() == following[1].strip()
    if page.stem == "u-dma-buf":
        assert (tmp_path / "writes.log").read_text().split()[: len(FIRST_RUN)] == FIRST_RUN


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    missing = [
        match["file"] for match in _LINK.finditer(page.read_text()) if not (page.parent / match["file"]).exists()
    ]
    assert not missing
