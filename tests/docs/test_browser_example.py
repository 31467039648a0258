"""The page in the browser finds the lines of text that the network and the other example's boxes give."""

from __future__ import annotations

import functools
import http.server
import json
import re
import subprocess
import sys
import threading
from html import unescape
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnxruntime
import pytest
from pixels import write_for_detector
from text_boxes import find_boxes
from wheel_models import DETECT, PP_OCR, wheel_model

from tests.plan_chart.browser import BROWSER
from tests.selection.installed import missing

ROOT = Path(__file__).parents[2]
SIDE = 640


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and writes no lines about it."""

    def log_message(self, *_: Any) -> None:
        pass


def in_browser(site: Path, profile: Path) -> list[dict[str, float]]:
    """The boxes that the page at ``site`` notes."""
    browser = BROWSER or missing("Chromium", "chromium")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        done = subprocess.run(
            [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             f"--user-data-dir={profile}", "--virtual-time-budget=60000", "--dump-dom",
             f"http://127.0.0.1:{server.server_port}/"],
            capture_output=True, text=True, timeout=300, check=True,
        )  # fmt: skip
    finally:
        server.shutdown()
        server.server_close()
    noted = re.search(r'data-boxes="(.*?)"', done.stdout)
    assert noted is not None, done.stdout[-2000:] + done.stderr[-2000:]
    found: list[dict[str, float]] = json.loads(unescape(noted[1]))
    return found


def expected() -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of each line, by onnxruntime and OpenCV."""
    picture = cv2.imread(str(ROOT / "examples" / "ocr" / "picture.jpg"))
    whole = np.zeros((SIDE, SIDE, 3), np.uint8)
    whole[: picture.shape[0], : picture.shape[1]] = picture
    x = np.empty((1, 3, SIDE, SIDE), np.float32)
    write_for_detector(whole, x)
    session = onnxruntime.InferenceSession(str(wheel_model(PP_OCR, DETECT)), providers=["CPUExecutionProvider"])
    (probability,) = session.run(None, {"x": x})
    corners = [box.corners for box in find_boxes(probability[0, 0])]
    return [(*c.min(0), *c.max(0)) for c in corners]  # type: ignore[misc]


def overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """The area of two boxes' intersection, of their union's."""
    sides = [min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])]
    common = max(sides[0], 0.0) * max(sides[1], 0.0)
    return common / (sum((c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)) - common)


@pytest.mark.full
def test_the_page_finds_the_lines_of_the_picture(tmp_path: Path) -> None:
    site = tmp_path / "site"
    subprocess.run([sys.executable, ROOT / "examples" / "browser" / "build.py", site], check=True, capture_output=True)
    found = [(box["left"], box["top"], box["right"], box["bottom"]) for box in in_browser(site, tmp_path / "profile")]
    wanted = expected()
    assert len(found) == len(wanted) > 8
    # A rotated box is a little larger than an upright one around the same pixels: 12 degrees at most here.
    assert all(max(overlap(box, other) for other in found) > 0.6 for box in wanted)
