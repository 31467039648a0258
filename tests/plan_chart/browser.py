"""Where texts of a picture are drawn, measured in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

from tests.selection.installed import missing

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

_MEASURE = """
const svg = document.querySelector("svg"), whole = svg.getBoundingClientRect();
const box = (e) => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
const texts = [...svg.querySelectorAll("text")].map((e) => [e.textContent, e.getAttribute("class"), box(e)]);
const boxes = [...svg.querySelectorAll("rect,circle")].map((e) => [e.getAttribute("class"), box(e)]);
const style = getComputedStyle(document.body);
document.title = JSON.stringify({ whole: box(svg), texts, boxes, page: style.backgroundColor });
"""


def measured(html: str, folder: Path, dark: bool = False) -> dict[str, Any]:
    """Boxes of the picture of a page, of its texts (content, class, box) and of its shapes (class, box)."""
    browser = BROWSER or missing("Chromium", "chromium")
    file = folder / "page.html"
    file.write_text(html.replace("</body>", f"<script>{_MEASURE}</script></body>"), encoding="utf-8")
    done = subprocess.run(
        [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,900",
         f"--blink-settings=preferredColorScheme={0 if dark else 1}",
         f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=4000", "--dump-dom", file.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert title is not None, done.stderr
    found: dict[str, Any] = json.loads(unescape(title[1]))
    return found


def is_inside(inner: list[float], outer: list[float], slack: float = 0.5) -> bool:
    """Whether a box (left, top, right, bottom) lies in another."""
    return all(a >= b - slack for a, b in zip(inner[:2], outer[:2], strict=True)) and all(
        a <= b + slack for a, b in zip(inner[2:], outer[2:], strict=True)
    )
