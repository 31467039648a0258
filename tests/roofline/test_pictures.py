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


def lines(root: ElementTree.Element, css: str) -> list[dict[str, float]]:
    found = [line.attrib for line in root.findall(f"{_SVG}line") if line.attrib["class"] == css]
    return [{key: float(value) for key, value in each.items() if key != "class"} for each in found]


def test_a_name_that_is_away_from_its_dot_has_a_line_to_it() -> None:
    near = [TimedKernel(f"k{number}", "f", "cpu", 1e-3, 1_000_000, 1_000_000) for number in range(3)]
    root = ElementTree.fromstring(render_svg(near, LIMITS, "t"))
    (dot, *_), (name, *others) = (
        root.findall(f"{_SVG}circle"),
        [each for each in root.findall(f"{_SVG}text") if each.attrib.get("class", "").startswith("name")],
    )
    leaders = lines(root, "leader")
    assert len(leaders) == len(others) == 2  # the first stands beside it
    assert {(each["x1"], each["y1"]) for each in leaders} == {(float(dot.attrib["cx"]), float(dot.attrib["cy"]))}
    assert [each["y2"] + 4 for each in leaders] == [pytest.approx(float(each.attrib["y"])) for each in others]
    assert float(name.attrib["y"]) - 4 == pytest.approx(float(dot.attrib["cy"]), abs=0.06)


def test_the_axis_ends_where_the_data_does() -> None:
    def ends(*kernels: TimedKernel) -> tuple[float, float]:
        root = ElementTree.fromstring(render_svg(kernels, LIMITS, "t"))
        ticks = [each for each in root.findall(f"{_SVG}text") if each.attrib.get("class") == "quiet mid"]
        values = [float(each.text or "") for each in ticks if re.fullmatch(r"[0-9.e+-]+", each.text or "")]
        return min(values), max(values)

    assert ends(TimedKernel("k", "f", "cpu", 1e-3, 3_000_000, 1_000_000)) == (0.1, 10)  # roofs bend at 0.5 and 10
    assert ends(TimedKernel("k", "f", "cpu", 1e-3, 300_000_000, 1_000_000)) == (0.1, 1000)


def test_kernels_without_arithmetic_stand_apart() -> None:
    root = ElementTree.fromstring(render_svg(KERNELS, LIMITS, "t"))
    at = {str(dot.findtext(f"{_SVG}title")).split("\n")[0]: dot.attrib for dot in root.findall(f"{_SVG}circle")}
    left = min(line["x1"] for line in lines(root, "roof"))
    assert float(at["copy"]["cx"]) < left <= float(at["matmul <&> \ufffd"]["cx"])
    bottom, top = (max(line["y2"] for line in lines(root, "grid")), min(line["y1"] for line in lines(root, "grid")))
    share = (bottom - float(at["copy"]["cy"])) / (bottom - top)
    assert share == pytest.approx(KERNELS[1].of_bandwidth(LIMITS), abs=0.01)
    assert "no arithmetic" in "".join(root.itertext())
    plain = ElementTree.fromstring(render_svg(KERNELS[:1], LIMITS, "t"))
    assert "no arithmetic" not in "".join(plain.itertext())


def test_columns_are_explained() -> None:
    assert "weighed: the register tiles" in render_html(KERNELS, LIMITS, "t")
