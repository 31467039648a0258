"""A timeline as one HTML page: the picture, and below it a table of what was done, the longest first."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.plan_chart.markup import markup
from landbridge.plan_chart.palette import SURFACES
from landbridge.timeline.span import Span
from landbridge.timeline.svg import render_svg

_COLUMNS = ("step", "kind", "lane", "from us", "us", "share", "tasks")


def render_html(spans: Sequence[Span], title: str) -> str:
    """The page of ``spans`` as the text of an HTML file; it loads nothing and runs nothing."""
    busy = sum(span.duration_us for span in spans) or 1.0
    heads = "".join(f"<th>{markup(name)}</th>" for name in _COLUMNS)
    rows = "".join(_row(span, busy) for span in sorted(spans, key=lambda span: -span.duration_us))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{markup(title)}</title>'
        f"<style>{_style()}</style></head><body>\n{render_svg(spans, title)}"
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>\n</body></html>\n"
    )


def _row(span: Span, busy: float) -> str:
    words = (span.name, "kernel" if span.is_kernel else "host", span.lane)
    numbers = (f"{span.start_us:.1f}", f"{span.duration_us:.1f}", f"{100 * span.duration_us / busy:.1f} %")
    cells = "".join(f"<td>{markup(word)}</td>" for word in words)
    cells += "".join(f'<td class="n">{number}</td>' for number in (*numbers, span.tasks))
    return f"<tr>{cells}</tr>"


def _style() -> str:
    def rule(mode: str) -> str:
        s = SURFACES[mode]
        return f"body{{background:{s['page']};color:{s['ink']}}}th,td{{border-bottom:1px solid {s['rule']}}}"

    shared = (
        ":root{color-scheme:light dark}body{font:13px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;margin:20px}"
        "svg{max-width:100%;height:auto}table{border-collapse:collapse}th,td{padding:3px 9px;text-align:left}"
        "td:first-child{overflow-wrap:anywhere}"
        ".n{text-align:right;font-variant-numeric:tabular-nums}"
    )
    return f"{shared}{rule('light')}@media(prefers-color-scheme:dark){{{rule('dark')}}}"
