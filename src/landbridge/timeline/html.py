"""A timeline as one HTML page: the picture, and below it a table of what was done, the longest first."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.plan_chart.picture import table_page
from landbridge.text.markup import markup
from landbridge.timeline.span import Span
from landbridge.timeline.svg import render_svg

_COLUMNS = ("step", "kind", "lane", "from us", "us", "share", "tasks")


def render_html(spans: Sequence[Span], title: str) -> str:
    """Returns the page of ``spans`` as the text of an HTML file; it loads nothing and runs nothing."""
    busy = sum(span.duration_us for span in spans) or 1.0
    rows = (_row(span, busy) for span in sorted(spans, key=lambda span: -span.duration_us))
    return table_page(title, render_svg(spans, title), _COLUMNS, rows)


def _row(span: Span, busy: float) -> str:
    words = (span.name, "kernel" if span.is_kernel else "host", span.lane)
    values = (f"{span.start_us:.1f}", f"{span.duration_us:.1f}", f"{100 * span.duration_us / busy:.1f} %")
    cells = "".join(f"<td>{markup(word)}</td>" for word in words)
    cells += "".join(f'<td class="n">{number}</td>' for number in (*values, span.tasks))
    return cells
