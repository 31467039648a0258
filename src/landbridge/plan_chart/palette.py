"""Colours of pictures: a fill and the ink that reads on it, in light and in dark surroundings.

Every ink has a contrast of at least 4.5 to 1 on its fill (WCAG 2.2, success criterion 1.4.3).
"""

from __future__ import annotations

from landbridge.plan_chart.arena import Kind
from landbridge.records import record

_BLACK, _WHITE = "#14181d", "#ffffff"


@record(frozen=True)
class Swatch:
    """A colour of blocks: (fill, ink) on a light and on a dark page."""

    light: tuple[str, str]
    dark: tuple[str, str]


#: Any two kinds are told apart by those who lack one kind of cone, too: found by search, a test says how far apart.
KINDS: dict[Kind, Swatch] = {
    Kind.CONTRACTION: Swatch(("#5d8ab9", _BLACK), ("#152bac", _WHITE)),
    Kind.REDUCTION: Swatch(("#7ef5aa", _BLACK), ("#2d7d4b", _WHITE)),
    Kind.ELEMENTWISE: Swatch(("#d8d76c", _BLACK), ("#756a1a", _WHITE)),
    Kind.MOVE: Swatch(("#ba744e", _BLACK), ("#672314", _WHITE)),
    Kind.HOST: Swatch(("#bc54eb", _BLACK), ("#571374", _WHITE)),
    Kind.UNKNOWN: Swatch(("#8f989f", _BLACK), ("#5d6167", _WHITE)),
}

#: From the smallest blocks to the largest; each class holds four times the bytes of the one before.
SIZES: tuple[Swatch, ...] = (
    Swatch(("#e4effa", _BLACK), ("#1c3350", _WHITE)),
    Swatch(("#c2dcf4", _BLACK), ("#244a75", _WHITE)),
    Swatch(("#97c3ea", _BLACK), ("#2e629b", _WHITE)),
    Swatch(("#68a5dc", _BLACK), ("#5b94d6", _BLACK)),
    Swatch(("#2f6fb0", _WHITE), ("#8ab6ea", _BLACK)),
    Swatch(("#184c84", _WHITE), ("#c3dbf6", _BLACK)),
)


def size_class(nbytes: int, largest: int) -> int:
    """Returns the index into SIZES of a block when the largest one of its arena has ``largest`` bytes."""
    steps = 0
    while nbytes and nbytes * 4 <= largest and steps < len(SIZES) - 1:
        nbytes *= 4
        steps += 1
    return len(SIZES) - 1 - steps if nbytes else 0


#: Page, ink, quiet ink, rules, unused bytes, the band of the peak step, bound and capacity lines.
SURFACES: dict[str, dict[str, str]] = {
    "light": {
        "page": "#ffffff", "ink": "#1b1f24", "quiet": "#5c6570", "rule": "#d9dde2", "unused": "#eceff2",
        "band": "#e8590c", "bound": "#0b7a53", "capacity": "#c2255c", "live": "#9aa7b6",
    },
    "dark": {
        "page": "#15181d", "ink": "#e8eaed", "quiet": "#9aa4b0", "rule": "#343a43", "unused": "#23282f",
        "band": "#ff8f4d", "bound": "#4fd6a2", "capacity": "#ff7ba6", "live": "#5f6b7a",
    },
}  # fmt: skip
