"""Pictures of rooflines: well-formed, complete, and nothing from a name gets into the markup."""

from __future__ import annotations

import math
import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from landbridge.roofline import Level, MachineLimits, TimedKernel
from landbridge.roofline.html import render_html
from landbridge.roofline.svg import render_svg
from tests.plan_chart.browser import is_inside, measured

LIMITS = MachineLimits(2, 100e9, (Level("L1", 1 << 15, 200e9), Level("memory", 0, 10e9)))
KERNELS = [
    TimedKernel("matmul <&> \x01", "f", "cpu", 4e-3, 300_000_000, 5_000_000, 8, "6x4 block", ("6x4: 100 %",)),
    TimedKernel("copy", "g", "cpu", 1e-3, 0, 4_000_000, 2),
    TimedKernel("nothing", "h", "cpu", 0.0),
]
_SVG = "{http://www.w3.org/2000/svg}"


def test_every_kernel_is_a_dot_inside_the_picture_whose_area_is_its_time() -> None:
    root = ElementTree.fromstring(render_svg(KERNELS, LIMITS, "a & b"))
    dots = root.findall(f"{_SVG}circle")
    assert len(dots) == len(KERNELS)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for dot in dots:
        assert 0 <= float(dot.attrib["cx"]) <= width
        assert 0 <= float(dot.attrib["cy"]) <= height
    by_name = {str(dot.findtext(f"{_SVG}title")).split("\n")[0]: float(dot.attrib["r"]) for dot in dots}
    assert by_name["copy"] == pytest.approx(by_name["matmul <&> \ufffd"] * math.sqrt(1 / 4), abs=0.06)
    assert "75 % of peak" in ElementTree.tostring(root, encoding="unicode")


def test_the_roof_bends_where_bandwidth_meets_the_peak() -> None:
    root = ElementTree.fromstring(render_svg(KERNELS, LIMITS, "t"))
    peak, *slopes = [line for line in root.findall(f"{_SVG}line") if line.attrib["class"] == "roof"]
    assert len(slopes) == len(LIMITS.levels)
    assert {slope.attrib["y2"] for slope in slopes} == {peak.attrib["y1"]}
    assert slopes[0].attrib["x2"] == peak.attrib["x1"]  # the nearest memory reaches it first
    assert float(slopes[1].attrib["x2"]) > float(slopes[0].attrib["x2"])


def test_the_page_lists_all_kernels_the_longest_first_and_loads_nothing() -> None:
    page = render_html(KERNELS, LIMITS, "a <b>")
    rows = re.findall(r"<tr><td>(.*?)</td>", page)
    assert rows == ["matmul &lt;&amp;&gt; \ufffd", "copy", "nothing"]
    assert "<b>" not in page
    assert not re.search(r"<script|<link|src=|url\(", page)


def test_a_run_without_kernels_is_drawn() -> None:
    assert not ElementTree.fromstring(render_svg([], LIMITS, "none")).findall(f"{_SVG}circle")


@pytest.mark.parametrize("dark", [False, True])
def test_labels_are_inside_the_picture_and_apart_in_a_browser(tmp_path: Path, dark: bool) -> None:
    corners = [
        TimedKernel(f"{'W' * 60}@{number}", "f", "cpu", 1e-3, flops, nbytes)
        for number, (flops, nbytes) in enumerate(
            [(90_000_000, 900), (90_000_000, 900), (10, 4_000_000), (0, 100), (0, 90)]
        )
    ]
    found = measured(render_html([*KERNELS, *corners], LIMITS, "model.onnx" * 20), tmp_path, dark)
    for content, _, box in found["texts"]:
        assert is_inside(box, found["whole"]), content
    names = [box for _, css, box in found["texts"] if css.startswith("name")]
    assert len(names) == len(KERNELS) + len(corners)
    for a, b in combinations(names, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] + 2 or b[3] <= a[1] + 2
    assert found["page"] == ("rgb(21, 24, 29)" if dark else "rgb(255, 255, 255)")


def test_colours_are_explained() -> None:
    words = "".join(ElementTree.fromstring(render_svg(KERNELS, LIMITS, "t")).itertext())
    assert "bound by memory" in words and "bound by arithmetic" in words
