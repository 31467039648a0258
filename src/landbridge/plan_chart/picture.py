"""SVG pictures in HTML: in a page of their own with a table, or in a page of another program, such as a notebook."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence

from landbridge.plan_chart.palette import SURFACES
from landbridge.text.markup import markup


def embedded(svg: str, alternative: str) -> str:
    """Returns an HTML element that shows the SVG text ``svg``; ``alternative`` is text for those who do not see it.

    The picture is an image of its own, so that its styles do not reach the page around it. Where the page is narrower
    than words in it can be read, it scrolls.
    """
    data = b64encode(svg.encode()).decode()
    return (
        '<div style="overflow-x:auto;max-width:100%">'
        f'<img alt="{markup(alternative)}" style="width:100%;min-width:760px;max-width:1240px" '
        f'src="data:image/svg+xml;base64,{data}"></div>'
    )


def table_page(title: str, picture: str, columns: Sequence[str], rows: Iterable[str], note: str = "") -> str:
    """Returns the text of an HTML file that loads nothing and runs nothing: SVG text ``picture`` above a table.

    ``rows`` are the ``<td>`` elements of each row; numbers among them are of class ``n``. ``note`` is a line of text
    between them that explains the columns.
    """
    heads = "".join(f"<th>{markup(name)}</th>" for name in columns)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{markup(title)}</title>'
        f"<style>{_style()}</style></head><body>\n{picture}"
        f"{f'<p>{markup(note)}</p>' if note else ''}"
        f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>\n</body></html>\n"
    )


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
