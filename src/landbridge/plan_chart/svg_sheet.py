"""The parts that standalone SVG pictures share: page, title and legend, lines of text, light and dark colours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from landbridge.plan_chart.palette import SURFACES
from landbridge.plan_chart.text_width import shortened, text_width
from landbridge.text.markup import markup

#: Where the left edge of titles is.
MARGIN = 20
_TITLE_WIDTH = 800.0
_SHARED = (
    "text{font:11px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}.title{font-size:18px;font-weight:600}"
    ".head{font-size:13px;font-weight:600}.end{text-anchor:end}.mid{text-anchor:middle}"
)


def sheet(
    size: tuple[float, float], title_id: str, title: str, style: str, body: Iterable[str], message: str = ""
) -> str:
    """Returns a whole SVG file of ``size`` in user units, one page with ``title``, ``message`` below it and ``body``.

    ``title_id`` names the kind of picture for screen readers; ``style`` is from ``light_and_dark``.
    """
    width, height = size
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-label="{markup(title_id)}">',
            f"<style>{style}</style>",
            f'<rect class="page" width="{width}" height="{height}"/>',
            text(MARGIN, 34, shortened(title, _TITLE_WIDTH, 18), "title"),
            *([text(MARGIN, 56, message, "quiet")] if message else []),
            *body,
            "</svg>\n",
        ]
    )


def text(x: float, y: float, content: str, css: str = "", rotation: float = 0.0) -> str:
    """Returns a line of text from ``(x, y)``, rotated by ``rotation`` degrees about that point."""
    rotated = f' transform="rotate({rotation:g} {x:.1f} {y:.1f})"' if rotation else ""
    styled = f' class="{css}"' if css else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{styled}{rotated}>{markup(content)}</text>'


def legend(entries: Sequence[tuple[str, str]], right: float) -> Iterator[str]:
    """Returns ``entries``, each a label and the classes of its swatch, in a row whose right end is at ``right``."""
    for label, css in reversed(entries):
        right -= text_width(label) + 26 if label else 15
        yield f'<rect class="{css}" x="{right:.1f}" y="25" width="12" height="12" rx="2"/>'
        if label:
            yield text(right + 17, 35, label, "quiet")


def light_and_dark(owned: str, rules: Callable[[str], str]) -> str:
    """Returns the style of a picture: the shared one, the picture's own (``owned``), and the ``rules`` of colours for
    "light" and "dark" pages.

    Shapes take their colours by class, so that a dark page is one media query.
    """
    light, dark = (_page_rules(mode) + rules(mode) for mode in ("light", "dark"))
    return f"{_SHARED}{owned}{light}@media(prefers-color-scheme:dark){{{dark}}}"


def _page_rules(mode: str) -> str:
    surface = SURFACES[mode]
    return (
        f".page{{fill:{surface['page']}}}text,.ink{{fill:{surface['ink']}}}text.quiet{{fill:{surface['quiet']}}}"
        f".grid{{stroke:{surface['rule']}}}"
    )
