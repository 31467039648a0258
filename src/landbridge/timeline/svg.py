"""A timeline as one standalone SVG: time from left to right, one row of boxes for each lane.

A kernel and a host step differ in colour, and neighbours by the line between them. A name is inside its box, or left
out where that has no room for it; the tooltip has it all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from landbridge.plan_chart.arena import Kind
from landbridge.plan_chart.palette import KINDS, SURFACES
from landbridge.plan_chart.svg_sheet import MARGIN, legend, light_and_dark, sheet, text
from landbridge.plan_chart.text_width import shortened
from landbridge.text.markup import markup
from landbridge.timeline.span import Span

WIDTH = 1240
_LEFT, _RIGHT, _TOP = MARGIN, MARGIN, 74
_LANE, _BOX, _HEAD = 74, 40, 22
_AXIS = 40


def render_svg(spans: Sequence[Span], title: str) -> str:
    """Returns the picture of ``spans`` as the text of an SVG file, which refers to nothing outside itself."""
    lanes = list(dict.fromkeys(span.lane for span in spans))
    height = _TOP + _LANE * max(len(lanes), 1) + _AXIS
    busy = sum(span.duration_us for span in spans)
    text = f"{len(spans)} kernels and host steps, {busy / 1e3:.3f} ms"
    end = max((span.end_us for span in spans), default=0.0) or 1.0
    scale = (WIDTH - _LEFT - _RIGHT) / end
    rows = [line for number, lane in enumerate(lanes) for line in _lane(lane, spans, _TOP + _LANE * number, scale)]
    entries = (("kernel", "kernel swatch"), ("step of the host", "host swatch"))
    body = [*legend(entries, WIDTH - _RIGHT), *_axis(end, scale, height), *rows]
    return sheet((WIDTH, height), f"Timeline of {title}: {text}", title, _STYLE, body, text)


def time_text(microseconds: float) -> str:
    """Returns ``microseconds`` with a unit that leaves few digits."""
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= size:
            return f"{microseconds / size:.4g} {unit}"
    return f"{microseconds:.4g} us"


def time_ticks(end: float, count: int = 8) -> list[float]:
    """Returns about ``count`` round times from 0 to ``end``, in steps of 1, 2 or 5 times a power of ten."""
    power = 1e-3
    while power * 10 * count < end:
        power *= 10
    step = next((power * by for by in (1, 2, 5, 10) if power * by * count >= end), power * 10)
    return [step * number for number in range(int(end / step) + 1)]


def _lane(lane: str, spans: Sequence[Span], top: float, scale: float) -> Iterator[str]:
    mine = [span for span in spans if span.lane == lane]
    busy = sum(span.duration_us for span in mine)
    yield text(_LEFT, top + 14, f"{shortened(lane, 300, 13)}: {len(mine)} steps, {time_text(busy)}", "head")
    for span in mine:
        x, width = _LEFT + span.start_us * scale, max(span.duration_us * scale, 0.6)
        kind = "kernel" if span.is_kernel else "host"
        facts = [span.name, f"{time_text(span.duration_us)} from {time_text(span.start_us)} on"]
        facts += [f"{span.tasks} task{'s' * (span.tasks > 1)}"] * bool(span.tasks)
        yield (
            f'<rect class="{kind}" x="{x:.2f}" y="{top + _HEAD}" width="{width:.2f}" height="{_BOX}">'
            f"<title>{markup(chr(10).join(facts))}</title></rect>"
        )
        if name := shortened(span.name, width - 8):
            yield text(x + 4, top + _HEAD + _BOX / 2 + 4, name, f"on-{kind}")


def _axis(end: float, scale: float, height: float) -> Iterator[str]:
    bottom = height - _AXIS + 6
    for number, tick in enumerate(time_ticks(end)):
        x = _LEFT + tick * scale
        yield f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}"/>'
        at_end = x > WIDTH - _RIGHT - 30
        yield text(x, bottom + 16, time_text(tick), f"quiet {'end' if at_end else 'mid' if number else ''}".strip())


def _rules(mode: str) -> str:
    rules = [f".kernel,.host{{stroke:{SURFACES[mode]['page']}}}"]
    for css, kind in (("kernel", Kind.CONTRACTION), ("host", Kind.HOST)):
        fill, ink = KINDS[kind].dark if mode == "dark" else KINDS[kind].light
        rules.append(f".{css}{{fill:{fill}}}text.on-{css}{{fill:{ink}}}")
    return "".join(rules)


_STYLE = light_and_dark("rect{stroke-width:.6}", _rules)
