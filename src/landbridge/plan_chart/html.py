"""A plan as one self-contained HTML page: the picture of ``svg`` with zoom, search, and the facts of each block.

The page loads nothing, sends nothing and keeps nothing: its data, style and script stand in the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files

from landbridge.plan_chart.arena import Arena, ArenaBlock
from landbridge.plan_chart.names import common_prefix
from landbridge.plan_chart.palette import KINDS, SIZES, SURFACES
from landbridge.text.markup import markup

_SCRIPTS = ("facts.js", "view.js", "chart.js", "panel.js", "page.js")


def render_html(arenas: Sequence[Arena], title: str) -> str:
    """Returns the page of ``arenas``, one or more, as the text of an HTML file."""
    slots = {
        "%TITLE%": markup(title),
        "%STYLE%": _variables() + _source("style.css"),
        "%SCRIPT%": "".join(map(_source, _SCRIPTS)),
        "%DATA%": _embedded({"arenas": [_arena(a) for a in arenas], "palette": _palette()}),
    }
    # One pass: what is put into a slot may look like a slot.
    return re.sub("|".join(slots), lambda found: slots[found[0]], _source("page.html"))


def _source(name: str) -> str:
    return files(__package__).joinpath("page", name).read_text(encoding="utf-8")


def _variables() -> str:
    def rule(mode: str) -> str:
        return ":root{" + "".join(f"--{name}:{colour};" for name, colour in SURFACES[mode].items()) + "}"

    scheme = ":root{color-scheme:light dark}"
    return f"{scheme}{rule('light')}@media(prefers-color-scheme:dark){{{rule('dark')}}}\n"


def _embedded(data: object) -> str:
    """Returns ``data`` as JSON that cannot end the script element it stands in (HTML standard, 4.12.1.3)."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _palette() -> dict[str, object]:
    return {
        "kinds": {kind.value: asdict(swatch) for kind, swatch in KINDS.items()},
        "sizes": [asdict(swatch) for swatch in SIZES],
        "surfaces": SURFACES,
    }


def _arena(arena: Arena) -> dict[str, object]:
    return {
        "device": arena.device,
        "scope": arena.scope,
        "peak": arena.peak,
        "lowerBound": arena.lower_bound,
        "provedOptimal": arena.proved_optimal,
        "capacity": arena.capacity,
        "endTime": arena.end_time,
        "prefix": common_prefix(step.name for step in arena.steps),
        "steps": [{"name": step.name, "time": step.time} for step in arena.steps],
        "blocks": [_block(block) for block in arena.blocks],
    }


def _block(block: ArenaBlock) -> dict[str, object]:
    return {
        "id": block.id,
        "offset": block.offset,
        "nbytes": block.nbytes,
        "start": block.start,
        "end": block.end,
        "kind": block.kind,
        "what": block.subject,
        "uses": [asdict(use) for use in block.uses],
        "rewrittenAt": block.rewritten_at(),
    }
