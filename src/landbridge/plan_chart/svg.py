"""A plan as one standalone SVG: offset by time, one panel for each arena, for light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.plan_chart.arena import Arena, Kind
from landbridge.plan_chart.markup import markup
from landbridge.plan_chart.palette import KINDS, SIZES, SURFACES, Swatch
from landbridge.plan_chart.svg_panel import PANEL_WIDTH, Panel, text
from landbridge.plan_chart.units import bytes_text

_MARGIN = 20
_TITLE = 46


def render_svg(arenas: Sequence[Arena], title: str) -> str:
    """The picture of ``arenas`` as the text of an SVG file, 1240 units wide; it refers to nothing outside itself."""
    body: list[str] = []
    top = _MARGIN + _TITLE
    for arena in arenas:
        panel = Panel(arena)
        body.append(f'<g transform="translate({_MARGIN} {top})">{panel.draw()}</g>')
        top += panel.height + _MARGIN
    width = PANEL_WIDTH + 2 * _MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" width="{width}" height="{top}" '
            f'role="img" aria-label="{markup(_summary(arenas, title))}">',
            f"<style>{_style()}</style>",
            f'<rect class="page" width="{width}" height="{top}"/>',
            text(_MARGIN, _MARGIN + 20, title, "title"),
            _legend(arenas, width - _MARGIN, _MARGIN + 16),
            *body,
            "</svg>\n",
        ]
    )


def _summary(arenas: Sequence[Arena], title: str) -> str:
    panels = (f"{a.device} {a.scope} {len(a.blocks)} blocks in {bytes_text(a.peak)}".strip() for a in arenas)
    return f"Memory plan of {title}: {'; '.join(panels)}"


def _legend(arenas: Sequence[Arena], right: float, y: float) -> str:
    """Entries from right to left, so that they end at ``right`` whatever their number."""
    kinds = {block.kind for arena in arenas for block in arena.blocks}
    entries = [(kind.value, f"k{n}") for n, kind in enumerate(Kind) if kind in kinds and kind is not Kind.UNKNOWN]
    if not entries:
        entries = [("small", "s0"), *(("", f"s{n}") for n in range(1, len(SIZES) - 1)), ("large", f"s{len(SIZES) - 1}")]
    drawn = []
    for label, css in [*entries, ("unused", "unused swatch")][::-1]:
        right -= 6.5 * len(label) + (26 if label else 15)
        drawn.append(f'<rect class="{css}" x="{right:.1f}" y="{y - 9}" width="12" height="12" rx="2"/>')
        drawn.append(text(right + 17, y + 1.5, label, "quiet"))
    return "".join(drawn)


def _style() -> str:
    """Shapes take their colours by class, so that a dark page is one media query."""
    shared = (
        "text{font:11px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}"
        ".title{font-size:18px;font-weight:600}.head{font-size:13px;font-weight:600}.strong{font-weight:600}"
        ".line{fill:none;stroke-width:1.5}"
        ".bound,.capacity{stroke-dasharray:6 4}.band{fill-opacity:.14}.edge{stroke-width:1}"
        ".part{stroke-opacity:.45;stroke-dasharray:2 2}.end{text-anchor:end}.mid{text-anchor:middle}"
    )
    dark = _surface_rules("dark")
    return f"{shared}{_surface_rules('light')}@media(prefers-color-scheme:dark){{{dark}}}"


def _surface_rules(mode: str) -> str:
    surface = SURFACES[mode]
    rules = [
        f".page{{fill:{surface['page']}}}text,.ink{{fill:{surface['ink']}}}.quiet{{fill:{surface['quiet']}}}",
        f".rule,.swatch{{stroke:{surface['rule']}}}.unused{{fill:{surface['unused']}}}.band{{fill:{surface['band']}}}",
        f".peak{{fill:{surface['band']}}}.live{{fill:{surface['live']}}}.edge{{stroke:{surface['page']}}}",
        f".line.top{{stroke:{surface['ink']}}}",
        *(f".line.{name}{{stroke:{surface[name]}}}text.{name}{{fill:{surface[name]}}}" for name in _LINES),
    ]
    swatches = [*((f"k{n}", KINDS[kind]) for n, kind in enumerate(Kind)), *((f"s{n}", s) for n, s in enumerate(SIZES))]
    for css, swatch in swatches:
        fill, ink = _of(swatch, mode)
        rules.append(f".{css}{{fill:{fill}}}.on-{css}{{fill:{ink}}}.part.{css}{{stroke:{ink}}}")
    return "".join(rules)


_LINES = ("bound", "capacity")


def _of(swatch: Swatch, mode: str) -> tuple[str, str]:
    return swatch.dark if mode == "dark" else swatch.light
