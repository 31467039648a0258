"""Estimates the width of text, for labels that must fit: not less than common system fonts draw it."""

from __future__ import annotations

#: Of one letter. Those that are in no list are as wide as the widest.
_WIDTHS = {
    **dict.fromkeys("il.,:;|!'`jI()[]{}/\\ ", 5.0),
    **dict.fromkeys('abcdefghknopqrstuvxyz0123456789_-+*=<>^~"?$#', 7.4),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ&", 9.0),
}
_WIDEST = 11.6
_ELLIPSIS = "…"


def text_width(text: str, size: float = 11.0) -> float:
    """Returns the width of ``text`` in letters of ``size``, rather too wide than too narrow."""
    return sum(_WIDTHS.get(letter, _WIDEST) for letter in text) * size / 11.0


def shortened(text: str, width: float, size: float = 11.0) -> str:
    """Returns ``text`` shortened to ``width`` by leaving out its middle; empty where fewer than four letters would
    stay.
    """
    if text_width(text, size) <= width:
        return text
    for retained in range(min(len(text) - 1, int(width / 4)), 3, -1):
        shorter = f"{text[: retained // 2]}{_ELLIPSIS}{text[len(text) - (retained - retained // 2) :]}"
        if text_width(shorter, size) <= width:
            return shorter
    return ""
