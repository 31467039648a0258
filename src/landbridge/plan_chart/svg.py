"""A plan as one standalone SVG: offset by time, one panel for each arena, for light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.plan_chart.arena import Arena, Kind
from landbridge.plan_chart.palette import KINDS, SIZES, SURFACES, Swatch
from landbridge.plan_chart.svg_panel import PANEL_WIDTH, Panel
from landbridge.plan_chart.svg_sheet import MARGIN, legend, light_and_dark, sheet
from landbridge.plan_chart.units import bytes_text

_TITLE = 46


def render_svg(arenas: Sequence[Arena], title: str) -> str:
    """Returns the picture of ``arenas`` as the text of an SVG file, 1240 units wide; it refers to nothing outside
    itself.
    """
    body: list[str] = []
    top = MARGIN + _TITLE
    for arena in arenas:
        panel = Panel(arena)
        body.append(f'<g transform="translate({MARGIN} {top})">{panel.draw()}</g>')
        top += panel.height + MARGIN
    width = PANEL_WIDTH + 2 * MARGIN
    drawn = [*legend(_entries(arenas), width - MARGIN), *body]
    return sheet((width, top), _summary(arenas, title), title, _STYLE, drawn)


def _summary(arenas: Sequence[Arena], title: str) -> str:
    panels = (f"{a.device} {a.scope} {len(a.blocks)} blocks in {bytes_text(a.peak)}".strip() for a in arenas)
    return f"Memory plan of {title}: {'; '.join(panels)}"


def _entries(arenas: Sequence[Arena]) -> list[tuple[str, str]]:
    """Returns the entries of the legend: the kinds of the blocks, or sizes where kinds are not known."""
    kinds = {block.kind for arena in arenas for block in arena.blocks}
    entries = [(kind.value, f"k{n}") for n, kind in enumerate(Kind) if kind in kinds and kind is not Kind.UNKNOWN]
    if not entries:
        entries = [("small", "s0"), *(("", f"s{n}") for n in range(1, len(SIZES) - 1)), ("large", f"s{len(SIZES) - 1}")]
    return [*entries, ("unused", "unused swatch")]


def _surface_rules(mode: str) -> str:
    surface = SURFACES[mode]
    rules = [
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


_STYLE = light_and_dark(
    ".strong{font-weight:600}.line{fill:none;stroke-width:1.5}"
    ".bound,.capacity{stroke-dasharray:6 4}.band{fill-opacity:.14}.edge{stroke-width:1}"
    ".part{stroke-opacity:.45;stroke-dasharray:2 2}",
    _surface_rules,
)
