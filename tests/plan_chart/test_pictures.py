"""SVG and HTML: well-formed, self-contained, every block where it was planned; and colours that can be read."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import combinations, pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from landbridge import planner
from landbridge.plan_chart import Arena, arena_of_buffers, arenas_of_executable
from landbridge.plan_chart.html import render_html
from landbridge.plan_chart.palette import KINDS, SIZES, SURFACES, size_class
from landbridge.plan_chart.svg import render_svg
from landbridge.plan_chart.units import byte_ticks, bytes_text
from landbridge.planner import Buffer
from tests.plan_chart.programs import program

SVG = "{http://www.w3.org/2000/svg}"
NASTY = "</script><b>&\"'%DATA%"


def _many(count: int) -> Arena:
    buffers = [Buffer(i, 1 + i % 7, 1, i, i + 1 + i % 5) for i in range(count)]
    return arena_of_buffers(buffers, planner.plan(buffers, budget_seconds=0), capacity=40)


def _rectangles(svg: str) -> dict[str, dict[str, float]]:
    """The rectangles that have a tooltip, by its first word."""
    found = {}
    for rect in ElementTree.fromstring(svg).iter(f"{SVG}rect"):
        title = rect.findtext(f"{SVG}title")
        if title is not None:
            box = {name: float(rect.attrib[name]) for name in ("x", "y", "width", "height")}
            found[title.partition(":")[0]] = box
    return found


def test_svg_draws_every_block_to_scale() -> None:
    buffers = [Buffer("a", 4, 1, 0, 3), Buffer("b", 8, 1, 1, 2), Buffer("none", 0, 1, 0, 1)]
    boxes = _rectangles(render_svg([arena_of_buffers(buffers, planner.plan(buffers))], "two"))
    assert set(boxes) == {"a", "b"}
    a, b = boxes["a"], boxes["b"]
    assert b["height"] == pytest.approx(2 * a["height"], abs=0.2)
    assert a["width"] == pytest.approx(3 * b["width"], abs=0.2)
    assert b["x"] == pytest.approx(a["x"] + b["width"], abs=0.2)
    tops = sorted((box["y"] + box["height"], box["y"]) for box in boxes.values())
    assert all(lower[0] <= upper[1] + 0.2 or upper[0] <= lower[1] + 0.2 for lower, upper in pairwise(tops))


def test_svg_has_a_panel_for_each_arena_and_stands_alone() -> None:
    svg = render_svg(arenas_of_executable(program()), NASTY)
    assert {"concat", "flag", "concat#2"} == set(_rectangles(svg))
    words = "".join(ElementTree.fromstring(svg).itertext())
    for word in ("cpu · global: 1.02 kB planned", "cpu · global.rows", "not proved optimal", NASTY, "update"):
        assert word in words
    assert not re.search(r"(href|src|url\()\s*=?\s*[\"']?(http|//|file)", svg)
    assert "prefers-color-scheme:dark" in svg


def test_svg_of_many_blocks_stays_small_and_names_those_with_space() -> None:
    svg = render_svg([_many(2000)], "many")
    assert len(_rectangles(svg)) == 2000
    assert len(svg) < 600_000
    (few,) = (ElementTree.fromstring(render_svg([_many(8)], "few")),)
    assert {"0", "7"} <= {text.text for text in few.iter(f"{SVG}text")}


@given(st.text(st.characters(), min_size=1))
@example("\ud800\x00\x1b")
def test_any_name_can_be_drawn(name: str) -> None:
    buffers = [Buffer(name, 4, 1, 0, 1)]
    arena = arena_of_buffers(buffers, planner.plan(buffers))
    svg, html = render_svg([arena], name), render_html([arena], name)
    assert ElementTree.fromstring(svg.encode("utf-8")).tag == f"{SVG}svg"
    page = _Page()
    page.feed(html.encode("utf-8").decode("utf-8"))
    assert json.loads(page.scripts["application/json"])["arenas"][0]["blocks"][0]["id"] == name


class _Page(HTMLParser):
    """What a browser would load, and the scripts that it would run."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.scripts: dict[str, str] = {}
        self._script: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]
        self._script = dict(attrs).get("type") or "script" if tag == "script" else None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.scripts[self._script] = self.scripts.get(self._script, "") + data

    def handle_endtag(self, tag: str) -> None:
        self._script = None


def test_html_holds_its_data_and_loads_nothing() -> None:
    arenas = arenas_of_executable(program())
    html = render_html(arenas, NASTY)
    page = _Page()
    page.feed(html)
    assert page.loads == []
    assert set(page.scripts) == {"application/json", "script"}
    data = json.loads(page.scripts["application/json"])
    assert [arena["scope"] for arena in data["arenas"]] == ["global", "global.rows"]
    joined = data["arenas"][0]["blocks"][0]
    assert (joined["id"], joined["offset"], joined["nbytes"], joined["rewrittenAt"]) == ("concat", 64, 512, [2])
    assert not re.search(r"https?://|\bimport\b|fetch\(|XMLHttpRequest|@import", html)


def test_html_takes_any_name_of_a_block() -> None:
    buffers = [Buffer(NASTY, 4, 1, 0, 1), Buffer("%SCRIPT% ", 4, 1, 0, 1)]
    page = _Page()
    page.feed(render_html([arena_of_buffers(buffers, planner.plan(buffers))], "names"))
    data = json.loads(page.scripts["application/json"])
    assert [block["id"] for block in data["arenas"][0]["blocks"]] == [NASTY, "%SCRIPT% "]


def _contrast(one: str, other: str) -> float:
    """WCAG 2.2, contrast ratio of two colours ``#rrggbb``."""

    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_ink_can_be_read_on_its_fill() -> None:
    for swatch in [*KINDS.values(), *SIZES]:
        for fill, ink in (swatch.light, swatch.dark):
            assert _contrast(fill, ink) >= 4.5, (fill, ink)
    for surface in SURFACES.values():
        for name in ("ink", "quiet", "bound", "capacity"):
            assert _contrast(surface[name], surface["page"]) >= 4.5, name


#: What who lacks long, middle or short cones sees of linear red, green, blue: Machado, Oliveira and Fernandes, "A
#: Physiologically-based Model for Simulation of Color Vision Deficiency", 2009, table 1, severity 1.
_SEEN = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}
#: From linear red, green, blue to X, Y, Z of D65, each of its white (IEC 61966-2-1).
_XYZ = np.array(((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505)))


def _lab(colour: str, seen: str) -> np.ndarray:
    """CIE L*a*b* of ``colour`` as those see it."""
    code = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(code <= 0.04045, code / 12.92, ((code + 0.055) / 1.055) ** 2.4)
    x, y, z = np.cbrt(np.maximum(_XYZ @ np.clip(np.array(_SEEN[seen]) @ linear, 0, 1) / _XYZ.sum(1), 0.008856))
    return np.array((116 * y - 16, 500 * (x - y), 200 * (y - z)))


@pytest.mark.parametrize("seen", _SEEN)
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_kinds_are_told_apart_with_few_hues_too(mode: str, seen: str) -> None:
    fills = [getattr(swatch, mode)[0] for swatch in KINDS.values()]
    differences = {(a, b): float(np.linalg.norm(_lab(a, seen) - _lab(b, seen))) for a, b in combinations(fills, 2)}
    assert min(differences.values()) > 15, min(differences, key=differences.__getitem__)  # about 2 is just noticed


def test_size_classes_and_units() -> None:
    assert [size_class(n, 1024) for n in (0, 1, 2, 5, 17, 65, 257, 1024)] == [0, 0, 1, 2, 3, 4, 5, 5]
    assert [bytes_text(n) for n in (0, 999, 1000, 3928576, 25 * 10**6, 4 * 10**9)] == [
        "0 B", "999 B", "1.00 kB", "3.93 MB", "25.0 MB", "4.00 GB",
    ]  # fmt: skip
    for top in (0, 1, 7, 1048576, 3928576):
        ticks = byte_ticks(top)
        assert ticks[0] == 0
        assert top - ticks[-1] <= max(ticks[1:2] or [0])
        assert len(ticks) <= 7
