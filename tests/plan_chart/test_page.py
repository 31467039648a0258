"""The HTML page in a browser: it draws, finds, chooses, zooms and changes scopes without an error."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from landbridge.plan_chart import arenas_of_executable
from landbridge.plan_chart.html import render_html
from tests.plan_chart.programs import program
from tests.selection.installed import missing

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

#: Runs after the page's own script; what it returns is read back from the document's title.
_USE = """
window.onerror = (text) => { document.title = JSON.stringify({ error: text }); };
const colours = () => new Set(chart.context.getImageData(0, 0, chart.canvas.width, chart.canvas.height).data).size;
// A busy machine may take long to draw a first frame.
const whenDrawn = (tries) => (colours() > 1 || !tries ? use() : setTimeout(whenDrawn, 100, tries - 1));
const use = () => {
  const found = { drawn: colours() };
  const middle = (block) => { const [x, y, w, h] = chart.box(block); return [x + w / 2, y + h / 2]; };
  found.under = arena.blocks.map((block) => chart.blockUnder(...middle(block))?.id);
  found.blocks = arena.blocks.map((block) => block.id);
  el("search").value = "FLAG"; search(); nextMatch(1);
  found.matches = el("matches").textContent;
  found.panel = el("panel").innerText;
  found.inView = chart.view.y0 <= 0 && chart.view.y1 < chart.top && chart.view.x0 > 0;
  choose(arena.blocks.find((block) => block.id === "concat"));
  found.concat = el("panel").innerText;
  chart.fit();
  const edge = chart.canvas.getBoundingClientRect(), at = (x, y) => ({ clientX: edge.left + x, clientY: edge.top + y });
  chart.canvas.dispatchEvent(new PointerEvent("pointermove", at(...middle(arena.blocks[0]))));
  found.tip = el("tip").hidden ? null : el("tip").innerText;
  const held = chart.placeAt(300);
  chart.canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -100, ...at(300, 100) }));
  chart.draw();
  found.zoomed = [chart.view.x1 - chart.view.x0, chart.view.y1 < chart.top, chart.placeAt(300) - held];
  chart.canvas.dispatchEvent(new MouseEvent("dblclick"));
  found.whole = [chart.view.x0, chart.view.x1];
  el("arenas").children[1].click();
  found.second = [arena.scope, chart.view.x0, chart.view.x1, chart.stepUnder(LEFT + 1)];
  const names = ["GlobalAveragePool@12", "MaxPool@0", "WWWWiiii", "Conv@1+BatchNormalization@1+Relu"];
  const rooms = Array.from({ length: 110 }, (_, n) => n + 10);
  chart.context.font = FONT;
  const over = (name, room) => [chart.width(chart.shortened(name, room)) - room, name, room];
  found.over = names.flatMap((name) => rooms.map((room) => over(name, room))).filter(([more]) => more > 0);
  found.below = 12 + NAME_ROOM * Math.sin(NAME_TURN) + 11 * Math.cos(NAME_TURN) - NAMES;
  el("listing").open = true; listBlocks();
  found.rows = el("listing").querySelectorAll("tr").length;
  document.title = JSON.stringify(found);
};
setTimeout(whenDrawn, 200, 100);
"""


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    browser = BROWSER or missing("Chromium", "chromium")
    file = Path(tmp_path_factory.mktemp("page")) / "plan.html"
    html = render_html(arenas_of_executable(program()), "program")
    file.write_text(html.replace("</body>", f"<script>{_USE}</script></body>"), encoding="utf-8")
    done = subprocess.run(
        [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,800",
         f"--user-data-dir={file.parent / 'profile'}", "--virtual-time-budget=12000", "--dump-dom", file.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert title is not None, done.stderr
    result: dict[str, Any] = json.loads(unescape(title[1]))
    assert "error" not in result, result
    return result


def test_blocks_are_drawn_and_lie_under_the_pointer(used: dict[str, Any]) -> None:
    assert used["drawn"] > 10  # values of colour channels
    assert used["under"] == used["blocks"] == ["concat", "flag"]


def test_search_brings_a_block_into_view(used: dict[str, Any]) -> None:
    assert used["matches"] == "1 of 1"
    assert used["panel"].startswith("flag")
    assert used["inView"]


def test_a_chosen_block_tells_who_touches_it(used: dict[str, Any]) -> None:
    text = used["concat"]
    for words in ("512 bytes", "written: 256 B at +256 B", "written in place", "left", "makes", "flag"):
        assert words in text


def test_pointing_and_zooming(used: dict[str, Any]) -> None:
    assert used["tip"].startswith("concat\n512 B at 64")
    steps, higher, moved = used["zoomed"]
    assert (steps < 8, higher) == (True, True)
    assert moved == pytest.approx(0, abs=1e-6)  # what is under the pointer stays there
    assert used["whole"] == [0, 8]


def test_labels_stay_in_their_space(used: dict[str, Any]) -> None:
    assert used["over"] == []
    assert used["below"] == pytest.approx(0)  # the lowest corner of a name of a step is the end of the picture


def test_scopes_and_table(used: dict[str, Any]) -> None:
    assert used["second"] == ["global.rows", 0, 8, 0]
    assert used["rows"] == 2  # a heading and one block
