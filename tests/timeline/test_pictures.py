"""Pictures of timelines: complete, to scale, labels in their room, and nothing from a name gets into the markup."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from landbridge.timeline import Span
from landbridge.timeline.html import render_html
from landbridge.timeline.svg import render_svg, time_text, time_ticks
from tests.plan_chart.browser import is_inside, measured

_SVG = "{http://www.w3.org/2000/svg}"
_NAMES = (
    "conv2d_batch_normalization_relu@12",
    "WWWWWWWWWWWW@1",
    "iiii",
    "NonMaxSuppression",
    "a <b> & \x01",
    "mmmmmm%",
)


def spans() -> list[Span]:
    made, at = [], 0.0
    for number in range(24):
        lane, width = ("cpu", "opencl:0")[number % 3 == 0], 1.0 + 13 * (number % 11) ** 1.4
        made.append(Span(_NAMES[number % len(_NAMES)], lane, at, width, number % 4, number % 5 != 0))
        at += width + 0.5
    return made


def test_every_step_is_a_box_to_scale_in_the_row_of_its_lane() -> None:
    root = ElementTree.fromstring(render_svg(spans(), "a & b"))
    boxes = [rect for rect in root.findall(f"{_SVG}rect") if rect.find(f"{_SVG}title") is not None]
    assert len(boxes) == len(spans())
    drawn = sorted((float(b.attrib["x"]), float(b.attrib["width"]), b.attrib["y"], b.attrib["class"]) for b in boxes)
    scale = (drawn[-1][0] - drawn[0][0]) / spans()[-1].start_us
    for (x, width, _, kind), span in zip(drawn, spans(), strict=True):
        assert x - drawn[0][0] == pytest.approx(span.start_us * scale, abs=0.05)
        assert width == pytest.approx(max(span.duration_us * scale, 0.6), abs=0.05)
        assert kind == ("kernel" if span.is_kernel else "host")
    assert len({y for _, _, y, _ in drawn}) == 2


@pytest.mark.parametrize("dark", [False, True])
def test_labels_stay_in_their_space_in_a_browser(tmp_path: Path, dark: bool) -> None:
    found = measured(render_html(spans(), "model.onnx" * 20), tmp_path, dark)
    inside = [box for css, box in found["boxes"] if css in ("kernel", "host")]
    names = [(content, box) for content, css, box in found["texts"] if css.startswith("on-")]
    assert len(names) > 8
    for content, box in names:
        assert any(is_inside(box, box_around) for box_around in inside), content
    for content, _, box in found["texts"]:
        assert is_inside(box, found["whole"]), content
    assert found["page"] == ("rgb(21, 24, 29)" if dark else "rgb(255, 255, 255)")


def test_the_page_lists_all_steps_the_longest_first_and_loads_nothing() -> None:
    page = render_html(spans(), "a <b>")
    rows = re.findall(
        r"<tr><td>.*?</td><td>.*?</td><td>.*?</td><td class=\"n\">.*?</td><td class=\"n\">(.*?)</td>", page
    )
    assert [float(each) for each in rows] == sorted((round(s.duration_us, 1) for s in spans()), reverse=True)
    assert "<b>" not in page
    assert not re.search(r"<script|<link|src=|url\(", page)


def test_a_run_that_did_nothing_is_drawn() -> None:
    assert not ElementTree.fromstring(render_svg([], "none")).findall(f"{_SVG}rect[@class='kernel']")


@pytest.mark.parametrize("end", [0.002, 1.0, 7.3, 3140.0, 2.5e7])
def test_ticks_are_few_and_round(end: float) -> None:
    ticks = time_ticks(end)
    assert 3 <= len(ticks) <= 10 and ticks[-1] <= end
    step = f"{ticks[1]:.0e}"
    assert step[0] in "125" and ticks[1] == pytest.approx(float(step))


def test_times_have_units() -> None:
    assert [time_text(us) for us in (0, 12.5, 1500, 2.5e6)] == ["0 us", "12.5 us", "1.5 ms", "2.5 s"]
